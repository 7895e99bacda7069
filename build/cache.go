package build

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
)

// PackageCatalog is the catalog of one package as in the image.
type PackageCatalog struct {
	// Package is empty for the blobs of no package.
	Package string
	Catalog *declcfg.Catalog
	// Sources are the files of the catalog. Each has blobs of this package only.
	Sources []SourceFile
}

// SourceFile is a file below the image's /configs. Name is relative to it, Size in bytes.
type SourceFile struct {
	Name   string
	Size   int64
	Digest [sha256.Size]byte
}

// CacheFile is a file for the image's /cache.
type CacheFile struct {
	// Name is a file name without a directory.
	Name    string
	Content []byte
	// Notices are warnings about the package, reported by Options.Warn.
	Notices []string
}

// noticed are the notices about the packages of one layer. The layers of both compressions share it, and may be written
// at the same time.
type noticed struct {
	mu   sync.Mutex
	list []string
}

func (n *noticed) set(list []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = list
}

// get returns the notices of the last build of the layer; none for nil.
func (n *noticed) get() []string {
	if n == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.list
}

// caches builds the caches of the packages of one layer. Only one package at a time is in memory.
func caches(ctx context.Context, o *Options, g []content, notices *noticed) ([]layers.Entry, error) {
	keep := func(entries []layers.Entry) ([]layers.Entry, error) { return entries, nil }
	if len(g) > 1 {
		s := newEntrySpool(o.Dir)
		keep = func(entries []layers.Entry) ([]layers.Entry, error) { return s.take(ctx, entries) }
	}
	var lists [][]layers.Entry
	if o.Cache != nil {
		lists = append(lists, []layers.Entry{layers.Dir(cacheDir, 0o755)})
	}
	var noted []string
	for _, c := range g {
		catalog, err := c.load(ctx)
		if err != nil {
			return nil, fmt.Errorf("cache of package %q: %w", c.pkg, err)
		}
		var made []layers.Entry
		if o.Cache != nil {
			e, notices, err := nativeEntry(o, catalog)
			if err != nil {
				return nil, fmt.Errorf("cache of package %q: %w", c.pkg, err)
			}
			noted = append(noted, notices...)
			made = append(made, e)
		}
		extra, err := packageExtras(o, catalog)
		if err != nil {
			return nil, fmt.Errorf("cache of package %q: %w", c.pkg, err)
		}
		if made, err = keep(append(made, extra...)); err != nil {
			return nil, fmt.Errorf("cache of package %q: %w", c.pkg, err)
		}
		lists = append(lists, made)
	}
	notices.set(noted)
	return joined(lists...)
}

// nativeEntry returns the native cache of a package, and its notices.
func nativeEntry(o *Options, p PackageCatalog) (layers.Entry, []string, error) {
	f, err := o.Cache(p)
	if err != nil {
		return layers.Entry{}, nil, err
	}
	if f.Name == "" || strings.Contains(f.Name, "/") {
		return layers.Entry{}, nil, fmt.Errorf("%q is no file name", f.Name)
	}
	return layers.Bytes(path.Join(cacheDir, f.Name), 0o644, f.Content), f.Notices, nil
}

// cacheIDs identifies the caches in package layers and the programs that write them. It is nil if one of them has no
// ID.
func (o *Options) cacheIDs() []string {
	var ids []string
	if o.Cache != nil {
		if o.CacheID == "" {
			return nil
		}
		ids = append(ids, cacheDir, o.CacheID)
	}
	for _, x := range o.Extra {
		if x.Package != nil {
			ids = append(ids, x.Dir, x.ID)
		}
	}
	return ids
}

// cachesID identifies the inputs of the caches of packages other than the bytes of their files.
func cachesID(o *Options, g []content) string {
	ids := o.cacheIDs()
	if ids == nil {
		return ""
	}
	about := [][]string{ids}
	for _, c := range g {
		names := []string{c.pkg}
		for _, e := range c.entries {
			names = append(names, e.Name)
		}
		about = append(about, names)
	}
	return fmt.Sprintf("%q", about)
}

// load reads the catalog of one package from the files for the image.
func (c content) load(ctx context.Context) (PackageCatalog, error) {
	p := PackageCatalog{Package: c.pkg, Catalog: &declcfg.Catalog{}}
	for _, e := range c.entries {
		source, err := readInto(ctx, p.Catalog, e)
		if err != nil {
			return PackageCatalog{}, fmt.Errorf("%s: %w", e.Name, err)
		}
		p.Sources = append(p.Sources, source)
	}
	return p, nil
}

// readInto adds the blobs of a file to the catalog.
func readInto(ctx context.Context, all *declcfg.Catalog, e layers.Entry) (_ SourceFile, err error) {
	r, err := e.Open()
	if err != nil {
		return SourceFile{}, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	s := SourceFile{Name: strings.TrimPrefix(e.Name, configsDir+"/"), Size: e.Size}
	h := sha256.New()
	tee := io.TeeReader(r, h)
	c, err := declcfg.Read(ctx, tee, s.Name, declcfg.LoadOptions{Lazy: true})
	if err != nil {
		return SourceFile{}, err
	}
	if _, err := io.Copy(io.Discard, tee); err != nil {
		return SourceFile{}, err
	}
	h.Sum(s.Digest[:0])
	if e.Digest != "" && digest.NewDigestFromBytes(digest.SHA256, s.Digest[:]) != e.Digest {
		return SourceFile{}, layers.ErrChanged
	}
	all.Append(c)
	return s, nil
}
