package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/operator-bindery/bindery/layers"
)

// ExtraCache makes files that another server than the image's own expects beside the catalog. Its functions may be called
// concurrently and must be pure: the entries are a function of the packages.
type ExtraCache struct {
	// ID tells the format and which program writes it; it changes whenever the same packages would give other bytes.
	ID string
	// Dir is what of the image belongs to the cache, relative to its root. A base's directory there is hidden.
	Dir string
	// Package, unless nil, makes what goes into the layer of a package.
	Package func(PackageCatalog) ([]layers.Entry, error)
	// Top, unless nil, makes what goes into a layer above all packages, because it is not that of a single one.
	Top func(context.Context, WholeCatalog) ([]layers.Entry, error)
}

// WholeCatalog are all packages of a catalog, as they are in the image.
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

// extraDir is the cache that the server gets to know of; empty if that is the native one, or none. A server of the base's is
// no one that knows the native cache.
func (o *Options) extraDir() string {
	if len(o.Extra) == 0 || o.Cache != nil && len(o.Servers) > 0 {
		return ""
	}
	return o.Extra[0].Dir
}

// packageExtras are the entries of a package for all extra caches.
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

// hasPackageCaches is true if there is anything to be made of a package besides its files.
func (o *Options) hasPackageCaches() bool {
	for _, x := range o.Extra {
		if x.Package != nil {
			return true
		}
	}
	return o.Cache != nil
}

// topParts are the layers above all packages: one for each cache that has something there.
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
				files[i] = e.Verified()
			}
			whole.Packages = append(whole.Packages, PackageFiles{c.pkg, files})
			size += c.size()
		}
		parts = append(parts, part{kind: LayerCache, dir: x.Dir, layer: layers.Layer{
			Name: "cache " + path.Clean("/"+x.Dir), Work: size, MoreID: topID(x, whole),
			More: func(ctx context.Context) ([]layers.Entry, error) { return x.Top(ctx, whole) },
		}})
	}
	return parts
}

// topID tells all that a layer above all packages depends on; empty if not all digests of the files are known.
func topID(x ExtraCache, whole WholeCatalog) string {
	var about []string
	for _, p := range whole.Packages {
		about = append(about, "package", p.Package)
		for _, f := range p.Files {
			if f.Digest == "" {
				return ""
			}
			about = append(about, f.Name, f.Mode.String(), f.Digest.String())
		}
	}
	return x.ID + " " + noteKey("top 1", about...).String()
}

// joined puts the entries of several caches together. Directories that more than one of them has must be the same in all.
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
