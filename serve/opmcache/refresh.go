package opmcache

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/spool"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/internal/opmformat"
)

// Refresh writes the cache of a catalog to a directory, in the format [serve.FormatPogreb] or [serve.FormatJSON],
// unless the cache there matches the catalog. The catalog may have any layout. After an error the old cache is in
// place; a crash leaves the old or the new one, or one whose digest does not match, which opm detects. Bytes and modes
// are those of images, whatever the umask. The memory is that of the largest package, plus temporary files for the
// catalog and the cache. It is for [serve.Options.Refresh].
func Refresh(ctx context.Context, catalog fs.FS, dir, format string) (err error) {
	if r, err := Check(ctx, catalog,
		os.DirFS(dir)); err == nil && r.Valid() && (r.Format == formatJSON) == (format == serve.FormatJSON) {
		return nil
	}
	sum := fnv.New64a()
	packages, err := splitCatalog(ctx, catalog, sum)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, packages.Close()) }()
	if format == serve.FormatPogreb {
		return refreshPogreb(ctx, packages, sum, dir)
	}
	return refreshJSON(ctx, catalog, packages, dir)
}

// splitPackages are the blobs of a catalog by package, with numbers as opm reads them.
type splitPackages struct {
	*spool.Spool
	spans map[string][]spool.Span
}

// splitCatalog reads a catalog once. It writes all blobs in their order to sum, each with a newline.
func splitCatalog(ctx context.Context, catalog fs.FS, sum io.Writer) (_ *splitPackages, err error) {
	s := spool.New("", 0)
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	defer guard.Recover(&err)
	p := &splitPackages{s, map[string][]spool.Span{}}
	var text []byte
	err = declcfg.Walk(ctx, catalog, declcfg.LoadOptions{}, func(m *declcfg.Meta) (err error) {
		if text, err = appendNumbers(text[:0], m.Blob); err != nil {
			return fmt.Errorf("%s: %w", m.Pos, err)
		}
		text = append(text, '\n')
		sum.Write(text)
		name := m.Package
		if m.Schema == declcfg.SchemaPackage {
			name = m.Name
		}
		at, err := s.Append(text)
		list := p.spans[name]
		if n := len(list); n > 0 && list[n-1].At+list[n-1].Len == at.At {
			list[n-1].Len += at.Len
		} else {
			p.spans[name] = append(list, at)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// forEach calls do for every package, sorted by name, loaded and validated.
func (p *splitPackages) forEach(ctx context.Context, do func(c *declcfg.Catalog) error) error {
	for _, name := range slices.Sorted(maps.Keys(p.spans)) {
		var texts []io.Reader
		for _, at := range p.spans[name] {
			texts = append(texts, p.Open(at))
		}
		c, err := declcfg.Read(ctx, io.MultiReader(texts...), name, declcfg.LoadOptions{})
		if err == nil {
			err = c.Validate()
		}
		if err == nil {
			err = do(c)
		}
		if err != nil {
			return fmt.Errorf("process package %q: %w", name, err)
		}
	}
	return nil
}

func refreshPogreb(ctx context.Context, packages *splitPackages, sum hash.Hash64, dir string) (err error) {
	db, err := newDatabase("")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.s.Close()) }()
	index := packageIndex{}
	if err := packages.forEach(ctx, func(c *declcfg.Catalog) error { return putPackage(db, c, index) }); err != nil {
		return err
	}
	text, err := index.text()
	if err != nil {
		return err
	}
	if err := db.appendEntry([]byte(opmformat.IndexName), text); err != nil {
		return err
	}
	if err := db.digest(ctx, sum); err != nil {
		return err
	}
	files := db.files()
	d, err := newCacheDir(filepath.Join(dir, opmformat.PogrebDir), writeDirMode, writeFileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Abort()) }()
	for _, f := range files {
		if err := d.write(ctx, filepath.Join("db", f.Name), f.Open); err != nil {
			return err
		}
	}
	if err := d.write(ctx, opmformat.DigestName, layers.Bytes("", 0, digestText(sum)).Open); err != nil {
		return err
	}
	return d.replace()
}

func refreshJSON(ctx context.Context, catalog fs.FS, packages *splitPackages, dir string) (err error) {
	d, err := newCacheDir(filepath.Join(dir, opmformat.JSONDir), readDirMode, readFileMode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.Abort()) }()
	index := packageIndex{}
	write := func(name string, text []byte) error { return d.write(ctx, name, layers.Bytes("", 0, text).Open) }
	err = packages.forEach(ctx, func(c *declcfg.Catalog) error {
		if err := index.add(c); err != nil {
			return err
		}
		return jsonFiles(c, func(f jsonFile) error {
			name, err := filepath.Rel(opmformat.JSONDir, filepath.FromSlash(f.name))
			if err != nil {
				return err
			}
			return write(name, f.text)
		})
	})
	if err != nil {
		return err
	}
	text, err := index.text()
	if err != nil {
		return err
	}
	if err := write(opmformat.IndexName, text); err != nil {
		return err
	}
	sum := fnv.New64a()
	for _, tree := range [...]fs.FS{catalog, os.DirFS(d.Path())} {
		nodes, err := nodesOf(ctx, tree)
		if err != nil {
			return err
		}
		if err := writeNodes(ctx, sum, nodes); err != nil {
			return err
		}
	}
	// Until the digest is replaced the old one does not match: a crash here costs a rebuild.
	if err := d.replace(); err != nil {
		return err
	}
	name := filepath.Join(dir, opmformat.DigestName)
	if err := atomicfs.WriteFile(name, digestText(sum), readFileMode); err != nil {
		return err
	}
	return os.Chmod(name, readFileMode)
}

func digestText(sum hash.Hash64) []byte { return []byte(hex.EncodeToString(sum.Sum(nil))) }

// cacheDir is the directory of a cache being written.
type cacheDir struct {
	*atomicfs.Dir
	target            string
	dirMode, fileMode fs.FileMode
}

func newCacheDir(target string, dirMode, fileMode fs.FileMode) (*cacheDir, error) {
	d, err := atomicfs.NewDir(target)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(d.Path(), dirMode); err != nil {
		return nil, errors.Join(err, d.Abort())
	}
	return &cacheDir{d, target, dirMode, fileMode}, nil
}

// write creates a file, which must not exist, and its parent directories.
func (d *cacheDir) write(ctx context.Context, name string, open func() (io.ReadCloser, error)) (err error) {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%q is no name of a file", name)
	}
	for dir := filepath.Dir(name); dir != "."; dir = filepath.Dir(dir) {
		path := filepath.Join(d.Path(), dir)
		if _, err := os.Lstat(path); err == nil {
			break
		}
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
		for up := dir; up != "."; up = filepath.Dir(up) {
			if err := os.Chmod(filepath.Join(d.Path(), up), d.dirMode); err != nil {
				return err
			}
		}
	}
	in, err := open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	f, err := os.OpenFile(filepath.Join(d.Path(), name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if _, err = io.Copy(f, in); err == nil {
		err = f.Chmod(d.fileMode)
	}
	// Thousands of small files are not synced: the digest detects what a crash loses.
	if err == nil && d.fileMode == writeFileMode {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// replace puts the directory in place of the old one.
func (d *cacheDir) replace() error {
	err := d.Replace()
	if !errors.Is(err, syscall.EXDEV) {
		return err
	}
	// A directory from a lower layer of a container's file system cannot be renamed, only removed.
	if err := os.RemoveAll(d.target); err != nil {
		return err
	}
	return d.Commit()
}
