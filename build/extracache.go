package build

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

	"github.com/operator-bindery/bindery/layers"
)

// ExtraCache builds a cache for a server other than that of the image. Its functions may be called concurrently and
// must be pure: the entries depend only on the packages.
type ExtraCache struct {
	// ID identifies the format and the program that writes it; it must change whenever the bytes for the same packages
	// change.
	ID string
	// Dir is the directory of the cache, relative to the root of the image. It hides that of the base.
	Dir string
	// Package, unless nil, returns the entries for the layer of a package.
	Package func(PackageCatalog) ([]layers.Entry, error)
	// Top, unless nil, returns the entries that are not of a single package, for a layer above all packages.
	Top func(context.Context, WholeCatalog) ([]layers.Entry, error)
}

// WholeCatalog has all packages of a catalog as in the image.
type WholeCatalog struct {
	// Dir is a directory for temporary files.
	Dir string
	// Packages are sorted by name. The empty name stands for the blobs of no package.
	Packages []PackageFiles
}

// PackageFiles are the files of one package. They can be opened any number of times.
type PackageFiles struct {
	Package string
	Files   []layers.Entry
}

// checkExtra refuses caches that cannot be in one image.
func (o *Options) checkExtra() error {
	known := map[string]bool{}
	for _, x := range o.Extra {
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

// extraDir returns the cache directory passed to the server; empty for the native cache or none. A base's server does
// not support the native cache.
func (o *Options) extraDir() string {
	if len(o.Extra) == 0 || o.Cache != nil && len(o.Servers) > 0 {
		return ""
	}
	return o.Extra[0].Dir
}

// packageExtras returns the entries of a package for all extra caches.
func packageExtras(o *Options, p PackageCatalog) ([]layers.Entry, error) {
	var all []layers.Entry
	for _, x := range o.Extra {
		if x.Package == nil {
			continue
		}
		es, err := x.Package(p)
		if err != nil {
			return nil, err
		}
		all = append(all, es...)
	}
	return all, nil
}

// hasPackageCaches reports whether the layer of a package has caches besides its files.
func (o *Options) hasPackageCaches() bool {
	return o.Cache != nil || slices.ContainsFunc(o.Extra, func(x ExtraCache) bool { return x.Package != nil })
}

// topParts returns the layers above all packages: one for each cache with entries there.
func topParts(o *Options, contents []content) []part {
	var parts []part
	for _, x := range o.Extra {
		if x.Top == nil {
			continue
		}
		whole := WholeCatalog{Dir: o.Dir}
		var size int64
		for _, c := range contents {
			files := make([]layers.Entry, len(c.entries))
			for i, e := range c.entries {
				files[i] = held(e)
			}
			whole.Packages = append(whole.Packages, PackageFiles{c.pkg, files})
			size += c.size()
		}
		parts = append(parts, part{kind: LayerCache, dir: x.Dir, layer: layers.Layer{
			Name: "cache " + path.Clean("/"+x.Dir), Work: size, MoreID: x.wholeID(whole),
			More: func(ctx context.Context) ([]layers.Entry, error) { return x.Top(ctx, whole) },
		}})
	}
	return parts
}

// joined merges the entries of several caches. Directories in more than one of them must be equal.
func joined(lists ...[]layers.Entry) ([]layers.Entry, error) {
	var all []layers.Entry
	dirs := map[string]fs.FileMode{}
	for _, list := range lists {
		for _, e := range list {
			if e.Kind == layers.KindDir {
				mode, known := dirs[e.Name]
				if known && mode != e.Mode {
					return nil, fmt.Errorf("directory %q has two modes, %v and %v", e.Name, mode, e.Mode)
				}
				if known {
					continue
				}
				dirs[e.Name] = e.Mode
			}
			all = append(all, e)
		}
	}
	return all, nil
}

// wholeID identifies the inputs of the layer above the packages; empty if one of them is unknown.
func (x ExtraCache) wholeID(w WholeCatalog) string {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", x.ID, x.Dir)
	for _, p := range w.Packages {
		for _, f := range p.Files {
			if f.Digest == "" {
				return ""
			}
			fmt.Fprintf(h, "%q %q %o %d %s\n", p.Package, f.Name, f.Mode, f.Size, f.Digest)
		}
	}
	return "whole catalog " + digest.NewDigest(digest.SHA256, h).String()
}

// held returns a file that fails when it is read to the end or closed if its digest has changed: the content of a layer
// must match its key.
func held(e layers.Entry) layers.Entry {
	open := e.Open
	if e.Digest == "" || open == nil {
		return e
	}
	e.Open = func() (io.ReadCloser, error) {
		r, err := open()
		if err != nil {
			return nil, err
		}
		return &heldFile{ReadCloser: r, h: sha256.New(), want: e.Digest}, nil
	}
	return e
}

type heldFile struct {
	io.ReadCloser
	h    hash.Hash
	want digest.Digest
}

func (f *heldFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.h.Write(p[:n])
	return n, err
}

// Close reads the rest, so that the digest is that of the whole file.
func (f *heldFile) Close() error {
	_, err := io.Copy(io.Discard, struct{ io.Reader }{f})
	if err == nil && digest.NewDigest(digest.SHA256, f.h) != f.want {
		err = layers.ErrChanged
	}
	return errors.Join(err, f.ReadCloser.Close())
}
