package change_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/edit/edittest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

func removal(names ...string) change.Edit {
	return change.Edit{Whole: []string{},
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			return edit.Remove(s.Catalog, names, edit.RemoveOptions{})
		}}
}

// read reads a database or a directory.
func read(t testing.TB, path string) *declcfg.Catalog {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.IsDir() {
		c, err := declcfg.Load(context.Background(), os.DirFS(path), declcfg.LoadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	db, err := sqlite.Open(context.Background(), path, sqlite.Options{TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := declcfg.Collect(db.Blobs(context.Background()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// migrated writes the catalog of a database as a directory.
func migrated(t testing.TB, path string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "catalog")
	if err := declcfg.WriteFS(context.Background(), dir, declcfg.FormatJSON, read(t, path).Blobs()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestRemovalInPlace(t *testing.T) {
	path := recorded.Part(t).Database(t, "small")
	for _, at := range []string{path, migrated(t, path)} {
		r, err := removal("etcd").InPlace(context.Background(), at, change.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := read(t, at)
		if len(c.Packages) != 1 || c.Packages[0].Name != "silicom-sts-operator" || r.Unchanged ||
			len(r.Account.Packages()) != 1 {
			t.Errorf("%s: %v, %+v", at, c.Packages, r)
		}
		if err := c.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// different describes the difference between a database and a directory.
func different(database, directory *declcfg.Catalog) string {
	return strings.NewReplacer("only ours", "only in the directory", "only opm's", "only in the database").Replace(
		edittest.Differences(edittest.Lines(orEmpty(directory), false), edittest.Lines(orEmpty(database), false)))
}
