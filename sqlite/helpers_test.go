package sqlite_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// writer opens a database for writing, as another program would.
func writer(t testing.TB, path, params string) *sql.DB {
	t.Helper()
	u := url.URL{Scheme: "file", Path: path}
	db, err := sql.Open("sqlite", u.String()+"?"+params)
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func exec(t testing.TB, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// altered returns the path of a recorded database after some SQL statements.
func altered(t testing.TB, name string, statements ...string) string {
	t.Helper()
	path := recorded.Part(t).Database(t, name)
	db := writer(t, path, "")
	exec(t, db, statements...)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// read returns the catalog of a database.
func read(t testing.TB, path string, o sqlite.Options) (*declcfg.Catalog, []sqlite.Finding, error) {
	t.Helper()
	o.TempDir = t.TempDir()
	db, err := sqlite.Open(context.Background(), path, o)
	if err != nil {
		return nil, nil, err
	}
	c, err := declcfg.Collect(db.Blobs(context.Background()))
	findings := db.Findings()
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(o.TempDir); len(left) > 0 {
		t.Errorf("%s was left in the temporary directory", left[0].Name())
	}
	return c, findings, err
}

// state describes what must not change in the directory of a database: names, contents, times.
func state(t testing.TB, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		out[e.Name()] = hex.EncodeToString(sum[:]) + info.ModTime().String() + info.Mode().String()
	}
	return out
}

func sameState(t testing.TB, before, after map[string]string) {
	t.Helper()
	for name := range after {
		if before[name] == "" {
			t.Errorf("%s was made", name)
		} else if before[name] != after[name] {
			t.Errorf("%s was changed", name)
		}
	}
	for name := range before {
		if after[name] == "" {
			t.Errorf("%s was removed", name)
		}
	}
}

func bundleNames(c *declcfg.Catalog) map[string]bool {
	names := map[string]bool{}
	for _, b := range c.Bundles {
		names[b.Name] = true
	}
	return names
}
