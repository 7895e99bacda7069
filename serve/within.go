package serve

import (
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/opmformat"
)

// without is the source without a cache directory that is below its own directory. What is written there is not part of the
// catalog: a server would end because it cannot read its own cache as blobs, or load the catalog again for ever because
// that has changed.
func (s Source) without(cacheDir string) Source {
	if cacheDir == "" || s.path == "" || s.fsys == nil || s.cacheDir != "" {
		return s
	}
	// Links are never followed below a catalog's directory, but to it.
	below, err := filepath.Rel(realPath(s.path), realPath(cacheDir))
	if err != nil || below == "." || !filepath.IsLocal(below) {
		return s
	}
	s.cacheDir = filepath.ToSlash(below)
	s.fsys = withoutCache{s.fsys, s.cacheDir}
	return s
}

// realPath is an absolute path without links, as far as there is something at it.
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

// withoutCache is a file system in which a directory is not listed, as long as there is nothing in it but a cache: a
// directory with anything else may be part of the catalog, and no cache is written there.
type withoutCache struct {
	fs.FS
	dir string
}

func (w withoutCache) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(w.FS, name)
	if name == path.Dir(w.dir) && w.isCache() {
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return e.IsDir() && e.Name() == path.Base(w.dir) })
	}
	return entries, err
}

// Stat is that of the file system below: opening a file to look at it may wait.
func (w withoutCache) Stat(name string) (fs.FileInfo, error) { return fs.Stat(w.FS, name) }

// isCache reports whether a cache is all that there is in the directory: one of this program, or one of opm's.
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
