package sqlite_test

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/sqlite"
)

// testCatalog writes a file-based catalog to a database and reads it back. The only differences are descriptions of
// some packages and of some APIs, which databases lack.
func testCatalog(t *testing.T, fsys fs.FS) {
	t.Helper()
	c, err := declcfg.Load(context.Background(), fsys, declcfg.LoadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "index.db")
	_, err = sqlite.Create(context.Background(), path, c.Blobs(), sqlite.WriteOptions{})
	described := map[string]bool{}
	for i := range c.Packages {
		if p := &c.Packages[i]; p.Description != "" {
			described[p.Name+" description"] = true
			p.Description = ""
		}
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		for j := range b.Properties {
			if p := &b.Properties[j]; p.Type == declcfg.PropertyGVK && strings.Contains(string(p.Value),
				`"description"`) {
				described[b.Package+" olm.gvk"] = true
				p.Value = withoutDescription(t, p.Value)
			}
		}
	}
	var loss *sqlite.LossError
	if !errors.As(err, &loss) {
		t.Fatalf("error %v", err)
	}
	for _, f := range loss.Findings {
		if !described[f.Package+" "+f.Field] {
			t.Errorf("lost: %+v", f)
		}
	}
	written, err := sqlite.Create(context.Background(), path, c.Blobs(), sqlite.WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range written.Findings {
		if f.Kind != sqlite.Changed || f.Field != "icon" {
			t.Errorf("%+v", f)
		}
	}
	back, findings, err := read(t, path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range findings {
		if f.Kind != sqlite.Dropped || f.Reason != "the channel has an entry for a bundle that is not in the database" {
			t.Errorf("reading: %+v", f)
		}
	}
	sameCatalog(t, c, back)
	checkEdges(t, path, c)
	t.Logf("%d packages, %d channels, %d bundles, %d entries, %d bytes", written.Packages, written.Channels,
		written.Bundles, written.Entries, written.Bytes)
}

func withoutDescription(t *testing.T, value []byte) []byte {
	t.Helper()
	var fields map[string]string
	if err := json.Unmarshal(value, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "description")
	value, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestCatalogHere(t *testing.T) { testCatalog(t, os.DirFS("../testdata/fbc/mini")) }

func TestRealCatalogs(t *testing.T) {
	archives, err := filepath.Glob("../testdata/real/catalog-*.tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	if len(archives) == 0 {
		t.Fatal("no catalogs")
	}
	for _, archive := range archives {
		t.Run(filepath.Base(archive), func(t *testing.T) {
			testCatalog(t, unpack(t, archive))
		})
	}
}

// unpack reads the files of an archive.
func unpack(t *testing.T, archive string) fstest.MapFS {
	t.Helper()
	files := fstest.MapFS{}
	for name, data := range recorded.Archive(t, archive) {
		files[filepath.Clean(name)] = &fstest.MapFile{Data: data, Mode: 0o600}
	}
	return files
}
