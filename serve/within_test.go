package serve

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A cache below the catalog's directory is not part of the catalog: neither at the first start, which creates it, nor
// at the next, nor on a reload.
func TestCacheBelowTheCatalog(t *testing.T) {
	for _, c := range []struct{ name, catalog, cache string }{
		{"in the directory", "catalog", "catalog/cache"},
		{"further down", "catalog", "catalog/x/y"},
		{"by way of a link to the catalog", "link", "catalog/cache"},
		{"by way of a link to the cache", "catalog", "link/cache"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/catalog/a.yaml", sampleA)
			do(t, os.Symlink("catalog", dir+"/link"))
			o := Options{CacheDir: filepath.Join(dir, c.cache), ReloadEvery: 5 * time.Millisecond}
			first := start(t, directory(t, filepath.Join(dir, c.catalog)), o)
			do(t, first.stop())
			o.EnforceIntegrity = true // the cache of the first start matches
			do(t, start(t, directory(t, filepath.Join(dir, c.catalog)), o).stop())
			o.EnforceIntegrity = false
			s := start(t, directory(t, filepath.Join(dir, c.catalog)), o)
			write(t, dir+"/b.yaml", sampleB)
			do(t, os.Rename(dir+"/b.yaml", dir+"/catalog/a.yaml"))
			s.log.wait(t, "the catalog was loaded again")
			if got := packageNames(t, dial(t, s.addr)); got != "b" {
				t.Errorf("served %q", got)
			}
			for _, r := range []*ran{first, s} {
				if text := r.log.all(); strings.Contains(text, errChanged.Error()) {
					t.Error(text)
				}
			}
		})
	}
}

// A directory with other content than a cache stays in the catalog, even if it is named as cache directory.
func TestCatalogInPlaceOfACache(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"a catalog beside cache files":  {"b.yaml": sampleB, "a.cache": ""},
		"a catalog in a directory":      {"cache/b.yaml": sampleB},
		"a catalog of an unlikely name": {"digest": sampleB},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			writeTree(t, dir, map[string]string{"a.yaml": sampleA})
			writeTree(t, dir+"/sub", files)
			src := directory(t, dir).without(dir + "/sub")
			for file := range files {
				found := errors.New("it is not listed")
				do(t, fs.WalkDir(src.fsys, ".", func(name string, _ fs.DirEntry, err error) error {
					if name == "sub/"+file {
						found = nil
					}
					return err
				}))
				if found != nil {
					t.Error(file, found)
				}
			}
		})
	}
}
