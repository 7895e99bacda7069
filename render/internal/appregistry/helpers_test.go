package appregistry_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/render/internal/appregistry"
	"github.com/operator-bindery/bindery/sqlite"
)

// csv returns a small ClusterServiceVersion; spec are additional lines of its spec.
func csv(name, version string, spec ...string) string {
	lines := ""
	for _, l := range spec {
		lines += "  " + l + "\n"
	}
	return fmt.Sprintf(
		"apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata:\n  name: "+
			"%s\nspec:\n  version: %s\n%s", name, version, lines)
}

// tree returns a file system of the given files.
func tree(files map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range files {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

// entries formats the graph of a catalog with one line per entry: PACKAGE/CHANNEL NAME replaces skips.
func entries(c *declcfg.Catalog) string {
	var b strings.Builder
	for _, p := range c.Packages {
		fmt.Fprintf(&b, "%s default %s\n", p.Name, p.DefaultChannel)
		for _, ch := range c.Channels {
			for _, e := range ch.Entries {
				if ch.Package == p.Name {
					fmt.Fprintf(&b, "%s/%s %s %s %v %s\n", p.Name, ch.Name, e.Name, e.Replaces, e.Skips, e.SkipRange)
				}
			}
		}
	}
	return b.String()
}

// small returns the catalog of the database from which opm's recorded export was made.
func small(t *testing.T) *declcfg.Catalog {
	t.Helper()
	db, err := sqlite.Open(t.Context(), recorded.Part(t).Database(t, "small"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	c, err := declcfg.Collect(db.Blobs(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func dirFS(t *testing.T, dir string) fs.FS {
	t.Helper()
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return fsys
}

// catalogOf reads the whole catalog of a tree.
func catalogOf(t *testing.T, tr *appregistry.Tree) *declcfg.Catalog {
	t.Helper()
	c, err := declcfg.Collect(tr.Blobs(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// listing returns every file below a directory with its content.
func listing(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || d.IsDir() {
			out[filepath.ToSlash(name)] = "a directory"
			return err
		}
		text, err := os.ReadFile(path)
		out[filepath.ToSlash(name)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}
