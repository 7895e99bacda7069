package serve

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// without returns the source without a cache directory below its own directory. The cache is not part of the catalog:
// the server would fail to read it as blobs, or reload the catalog forever because it changes the cache.
func (s Source) without(cacheDir string) Source {
	if cacheDir == "" || s.path == "" || s.fsys == nil || s.cacheDir != "" {
		return s
	}
	// Links below a catalog's directory are not followed, but links to it are.
	below, err := filepath.Rel(realPath(s.path), realPath(cacheDir))
	if err != nil || below == "." || !filepath.IsLocal(below) {
		return s
	}
	s.cacheDir = filepath.ToSlash(below)
	s.fsys = withoutCache{s.fsys, s.cacheDir}
	return s
}

// realPath returns the absolute path without links, as far as it exists.
func realPath(name string) string {
	if absolute, err := filepath.Abs(name); err == nil {
		name = absolute
	}
	rest := ""
	for dir := name; ; dir = filepath.Dir(dir) {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(resolved, rest)
		}
		if dir == filepath.Dir(dir) {
			return name
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

// withoutCache is a file system that does not list a directory as long as it contains only a cache: a directory with
// other files may be part of the catalog, and no cache is written there.
type withoutCache struct {
	fs.FS
	dir string
}

func (w withoutCache) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	if name == path.Dir(w.dir) && w.isCache() {
		entries = slices.DeleteFunc(entries,
			func(e fs.DirEntry) bool { return e.IsDir() && e.Name() == path.Base(w.dir) })
	}
	return entries, err
}

// Stat calls that of the underlying file system: opening a file to stat it could block.
func (w withoutCache) Stat(name string) (fs.FileInfo, error) { return fs.Stat(w.FS, name) }

// isCache reports whether the directory contains only a cache: a native one, or one of opm's.
func (w withoutCache) isCache() bool {
	entries, err := fs.ReadDir(w.FS, w.dir)
	if err != nil {
		return false
	}
	var json []string
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."): // in the making
		case !e.IsDir() && strings.HasSuffix(name, cacheFileExtension):
		case e.IsDir() && name == opmformat.PogrebDir:
		case e.IsDir() && name == opmformat.JSONDir, !e.IsDir() && name == opmformat.DigestName:
			json = append(json, name)
		default:
			return false
		}
	}
	return len(json) != 1
}
