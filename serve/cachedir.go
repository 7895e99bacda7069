package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

const cacheFileExtension = ".cache"

// CacheFileName returns the name of a package's file in a cache directory. Names of packages need no change; other
// bytes are escaped, and a name that is too long is replaced by its digest. Blobs without a package are in "_.cache".
func CacheFileName(pkg string) string {
	if pkg == "" {
		return "_" + cacheFileExtension
	}
	var b strings.Builder
	for i := range len(pkg) {
		switch c := pkg[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '.' && i > 0:
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	if b.Len() > 200 {
		sum := sha256.Sum256([]byte(pkg))
		return "_" + hex.EncodeToString(sum[:]) + cacheFileExtension
	}
	return b.String() + cacheFileExtension
}

// cacheDir is the content of a cache directory.
type cacheDir struct {
	fsys     fs.FS               // nil if there is no directory
	packages map[string]*Package // usable ones, by package
	bad      map[string]error    // unusable cache files, by file name
	foreign  []string            // other files, sorted
	unusable error               // why the directory cannot be read at all
}

// readCacheDir opens and verifies all cache files. A missing directory counts as empty.
func readCacheDir(ctx context.Context, fsys fs.FS) (*cacheDir, error) {
	dir := &cacheDir{packages: map[string]*Package{}, bad: map[string]error{}}
	entries, err := fs.ReadDir(fsys, ".")
	if errors.Is(err, fs.ErrNotExist) {
		return dir, nil
	}
	if err != nil {
		return nil, err
	}
	dir.fsys = fsys
	var names []string
	for _, e := range entries {
		switch name := e.Name(); {
		case strings.HasPrefix(name, "."):
			// A temporary file of a writer, or one that the file system creates.
		case e.IsDir() || !strings.HasSuffix(name, cacheFileExtension):
			dir.foreign = append(dir.foreign, name)
		default:
			names = append(names, name)
		}
	}
	var mu sync.Mutex
	err = guard.Each(ctx, runtime.GOMAXPROCS(0), names, func(ctx context.Context, _ int, name string) error {
		p, err := openCacheFile(ctx, fsys, name)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			dir.packages[p.name] = p
		case ctx.Err() != nil:
			return context.Cause(ctx)
		default:
			dir.bad[name] = err
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, dir.close())
	}
	return dir, nil
}

func (d *cacheDir) close() error {
	var errs []error
	for _, p := range d.packages {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}

func (d *cacheDir) empty() bool {
	return len(d.packages) == 0 && len(d.bad) == 0 && len(d.foreign) == 0 && d.unusable == nil
}

// errors returns everything in the directory that should not be there.
func (d *cacheDir) errors() []error {
	var errs []error
	if err := d.unwritable(); err != nil {
		errs = append(errs, err)
	}
	for _, name := range sortedNames(d.bad) {
		errs = append(errs, fmt.Errorf("%s: %w", name, d.bad[name]))
	}
	return errs
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// unwritable returns why nothing may be written to the directory, or nil.
func (d *cacheDir) unwritable() error {
	switch {
	case d.unusable != nil:
		return fmt.Errorf("cache directory: %w", d.unusable)
	case len(d.foreign) > 0:
		if format := opmFormat(d.fsys); format != "" {
			return fmt.Errorf("cache directory holds a cache of opm's (%s), which is neither read nor changed", format)
		}
		return fmt.Errorf("cache directory has unexpected contents: %s", strings.Join(d.foreign, ","))
	}
	return nil
}

// openCacheFile opens and verifies one file of a cache directory. It must be named after its package, so that each
// package has at most one.
func openCacheFile(ctx context.Context, fsys fs.FS, name string) (_ *Package, err error) {
	// Stat before opening: opening a FIFO waits for its writer.
	if info, err := fs.Stat(fsys, name); err != nil {
		return nil, err
	} else if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	p, err := openFile(f, info.Size())
	if err != nil {
		return nil, err
	}
	if want := CacheFileName(p.name); want != name {
		return nil, corrupt("it holds package %q, which belongs in %s", p.name, want)
	}
	return p, p.Verify(ctx)
}

// openFile opens a cache file and takes ownership of f. A file without random access is read into memory.
func openFile(f fs.File, size int64) (*Package, error) {
	r, ok := f.(io.ReaderAt)
	if !ok {
		data, err := io.ReadAll(io.LimitReader(f, size+1))
		if err != nil {
			return nil, err
		}
		r, size = bytes.NewReader(data), int64(len(data))
	}
	p, err := OpenPackage(r, size)
	if err != nil {
		return nil, err
	}
	p.close = f.Close
	return p, nil
}

// The formats of opm's caches, as opm names them.
const (
	FormatPogreb = opmformat.PogrebDir
	FormatJSON   = "json"
)

// opmFormat returns the format of opm's cache in a directory; empty if there is none. The server does not read such a
// cache: that takes as much CPU time as building its own. It only recognises the directory, to log that and leave it
// unchanged.
func opmFormat(dir fs.FS) string {
	isDir := func(name string) bool {
		info, err := fs.Stat(dir, name)
		return err == nil && info.IsDir()
	}
	if isDir(opmformat.PogrebDir) {
		return FormatPogreb
	}
	if _, err := fs.Stat(dir, opmformat.DigestName); err == nil && isDir(opmformat.JSONDir) {
		return FormatJSON
	}
	return ""
}

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
		case strings.HasPrefix(name, "."): // a temporary file
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
