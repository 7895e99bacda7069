package cataloglayer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// Caches are the serve caches of an image. Their functions may be called concurrently and must be pure: the content of
// a cache is a function of the packages. The zero value has no caches.
type Caches struct {
	// Native, unless nil, returns the cache of one package for the server of this project, a file in [CacheDir].
	Native func(Package) (File, error)
	// NativeID identifies the inputs of Native other than the catalog: the format and the program. Without it, layers
	// with such a cache are not cached.
	NativeID string
	// Extra are caches for other servers.
	Extra []Extra
}

// Package is the catalog of one package, as it is in the image.
type Package struct {
	// Name is empty for the blobs of no package.
	Name    string
	Catalog *declcfg.Catalog
	// Sources are the files that the catalog is in. Each holds blobs of this package only.
	Sources []serve.SourceFile
}

// File is a file of the native cache.
type File struct {
	// Name is that of a file, without a directory.
	Name    string
	Content []byte
	// Notices are warnings about the package.
	Notices []string
}

// Extra is a cache for a server other than that of the image.
type Extra struct {
	// ID identifies the format and which program writes it; it changes whenever the same packages would give other
	// bytes.
	ID string
	// Dir is the directory of the cache, relative to the root of the image. It hides that of the base.
	Dir string
	// Package, unless nil, returns the entries for the layer of a package.
	Package func(*declcfg.Catalog) ([]layers.Entry, error)
	// Whole, unless nil, returns the entries that are not of a single package, for a layer above all packages.
	// Temporary files are in the directory temp. The packages are sorted by name; the empty name stands for the blobs
	// of no package. Their files can be opened any number of times.
	Whole func(ctx context.Context, temp string, all []opmcache.Package) ([]layers.Entry, error)
}

// Native is the cache file of the server of this project. It names its source files: the server uses it only while they
// are unchanged.
func Native(p Package) (File, error) {
	var notices []string
	large := func(l serve.LargeBundle) {
		notices = append(notices,
			fmt.Sprintf("bundle %q in channel %q of package %q: an answer of %d bytes is larger than clients receive "+
				"by default (%d)",
				l.Bundle, l.Channel, l.Package, l.Size, serve.ClientMessageLimit))
	}
	content, err := serve.EncodePackage(p.Catalog, large, p.Sources...)
	return File{Name: serve.CacheFileName(p.Name), Content: content, Notices: notices}, err
}

// JSON is opm's cache in the format opm-json.
func JSON() Extra {
	return Extra{ID: opmcache.JSONID, Dir: opmcache.Dir, Package: opmcache.JSONEntries, Whole: opmcache.JSONTop}
}

// Pogreb is opm's cache in the format opm-pogreb.
func Pogreb() Extra {
	return Extra{ID: opmcache.PogrebID, Dir: opmcache.Dir, Whole: opmcache.PogrebTop}
}

// Check refuses caches that cannot be in one image.
func (c *Caches) Check() error {
	known := map[string]bool{}
	for _, x := range c.Extra {
		switch {
		case x.ID == "" || !fs.ValidPath(x.Dir) || x.Dir == ".":
			return errors.New("a cache without an ID or without a directory")
		case known[x.Dir]:
			return fmt.Errorf("two caches in /%s", x.Dir)
		}
		known[x.Dir] = true
	}
	return nil
}

// perPackage reports whether the layer of a package has caches besides its files.
func (c *Caches) perPackage() bool {
	return c.Native != nil || slices.ContainsFunc(c.Extra, func(x Extra) bool { return x.Package != nil })
}

// extras are the entries of a package for all extra caches.
func (c *Caches) extras(p Package) ([]layers.Entry, error) {
	var all []layers.Entry
	for _, x := range c.Extra {
		if x.Package == nil {
			continue
		}
		es, err := x.Package(p.Catalog)
		if err != nil {
			return nil, err
		}
		all = append(all, es...)
	}
	return all, nil
}

// WholeLayers is the number of layers that Whole returns.
func (c *Caches) WholeLayers() int {
	n := 0
	for _, x := range c.Extra {
		if x.Whole != nil {
			n++
		}
	}
	return n
}

// WholeLayer is a layer above all packages.
type WholeLayer struct {
	Dir   string // of the cache
	Layer layers.Layer
}

// Whole returns the layers above all packages: one for each cache that has something there. Temporary files are in the
// directory temp.
func (c *Caches) Whole(temp string, packages []opmcache.Package) []WholeLayer {
	var out []WholeLayer
	for _, x := range c.Extra {
		if x.Whole == nil {
			continue
		}
		all := make([]opmcache.Package, len(packages))
		var size int64
		for i, p := range packages {
			all[i] = opmcache.Package{Name: p.Name, Files: make([]layers.Entry, len(p.Files))}
			for n, e := range p.Files {
				all[i].Files[n] = verified(e)
			}
			size += layers.Layer{Entries: p.Files}.Size()
		}
		out = append(out, WholeLayer{x.Dir, layers.Layer{
			Name: "cache " + path.Clean("/"+x.Dir), Work: size, MoreID: x.wholeID(all),
			More: func(ctx context.Context) ([]layers.Entry, error) { return x.Whole(ctx, temp, all) },
		}})
	}
	return out
}

// wholeID identifies the inputs of the layer above the packages; empty if one of them is unknown.
func (x Extra) wholeID(all []opmcache.Package) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", x.ID, x.Dir)
	for _, p := range all {
		for _, f := range p.Files {
			if f.Digest == "" {
				return ""
			}
			fmt.Fprintf(h, "%q %q %o %d %s\n", p.Name, f.Name, f.Mode, f.Size, f.Digest)
		}
	}
	return "whole catalog " + digest.NewDigest(digest.SHA256, h).String()
}

// verified is a file whose read to the end and whose close fail if its digest has changed: the content of a layer must
// match its key.
func verified(e layers.Entry) layers.Entry {
	open := e.Open
	if e.Digest == "" || open == nil {
		return e
	}
	e.Open = func() (io.ReadCloser, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return &verifiedFile{ReadCloser: r, h: sha256.New(), want: e.Digest}, nil
	}
	return e
}

type verifiedFile struct {
	io.ReadCloser
	h    hash.Hash
	want digest.Digest
}

func (f *verifiedFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.h.Write(p[:n])
	return n, err
}

// Close reads what is left, so that the digest is that of the whole file.
func (f *verifiedFile) Close() error {
	_, err := io.Copy(io.Discard, struct{ io.Reader }{f})
	if err == nil && digest.NewDigest(digest.SHA256, f.h) != f.want {
		err = layers.ErrChanged
	}
	return errors.Join(err, f.ReadCloser.Close())
}
