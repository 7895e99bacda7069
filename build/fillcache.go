package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// ServeCache returns the serve cache of a catalog with the bytes that the server, or opm, would write to the directory
// dir of an image. kind is [ServeCacheNative] or [ServeCachePogreb], opm's default. The entries can be read as long as
// the directory temp exists.
func (in CatalogInput) ServeCache(ctx context.Context, kind ServeCache, dir, temp string) ([]layers.Entry, error) {
	switch kind {
	case ServeCacheNative:
		return fillNative(ctx, in.FS, temp, dir)
	case ServeCachePogreb:
		return fillPogreb(ctx, in.FS, temp, dir)
	}
	return nil, fmt.Errorf("a serve cache of the kind %q cannot be filled by itself", kind)
}

// fillPogreb builds opm's cache in opm's default format.
func fillPogreb(ctx context.Context, configs fs.FS, temp, dir string) (_ []layers.Entry, err error) {
	c, err := declcfg.Load(ctx, configs, declcfg.LoadOptions{Skeleton: true})
	if err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	files, err := FilesOf(c)
	if err != nil {
		return nil, err
	}
	whole, release, err := divideCatalog(ctx, CatalogInput{FS: configs, Files: files}, temp)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, release()) }()
	entries, err := opmcache.PogrebTop(ctx, temp, whole)
	if err != nil {
		return nil, err
	}
	var moved []layers.Entry
	for _, e := range entries {
		switch below, ok := strings.CutPrefix(e.Name, opmcache.Dir+"/"); {
		case ok:
			e.Name = path.Join(dir, below)
		case e.Name == opmcache.Dir:
			e.Name = dir
		default: // a parent directory of opmcache.Dir
			continue
		}
		moved = append(moved, e)
	}
	return moved, nil
}

// fillNative builds the cache of this project's server.
func fillNative(ctx context.Context, configs fs.FS, temp, dir string) (_ []layers.Entry, err error) {
	at, err := os.MkdirTemp(temp, "cache-")
	if err != nil {
		return nil, err
	}
	// The server's log messages during loading name a temporary directory, and would appear in every build.
	store, err := serve.Load(ctx, serve.FileSystem("/"+dir, configs, nil),
		serve.LoadOptions{CacheDir: at, MustWrite: true})
	if err != nil {
		return nil, err
	}
	if err := store.Close(); err != nil {
		return nil, err
	}
	root := os.DirFS(at)
	entries := []layers.Entry{layers.Dir(dir, 0o755)}
	list, err := fs.ReadDir(root, ".")
	for _, f := range list {
		var e layers.Entry
		if e, err = layers.File(path.Join(dir, f.Name()), root, f.Name()); err != nil {
			break
		}
		e.Mode = 0o644
		entries = append(entries, e)
	}
	return entries, err
}

// divideCatalog divides the catalog in a directory into packages as an image has them. Files with several packages are
// split. The files of the result are in temp or in the directory; release is called when they are no longer needed.
func divideCatalog(ctx context.Context, in CatalogInput,
	temp string) (_ []opmcache.Package, release func() error, err error) {
	if err := in.check(); err != nil {
		return nil, nil, err
	}
	s := newSpool(temp)
	contents, err := in.plan(ctx, &Options{}, s)
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return filesOf(contents), s.Close, nil
}
