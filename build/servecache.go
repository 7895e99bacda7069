package build

import (
	"context"
	"fmt"

	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// ServeCache is a kind of serve cache in an image.
type ServeCache string

// The kinds of serve caches.
const (
	// ServeCacheNative is that of this project's server: a file for each package, in the package's layer.
	ServeCacheNative ServeCache = "native"
	// ServeCacheJSON and ServeCachePogreb are opm's, for images that opm serves. They use the same directory: only one
	// of them is possible.
	ServeCacheJSON   ServeCache = "opm-json"
	ServeCachePogreb ServeCache = "opm-pogreb"
)

// SetServeCaches adds serve caches of these kinds to the image. Without any the server reads the catalog when it
// starts.
func (o *Options) SetServeCaches(kinds ...ServeCache) error {
	o.Cache, o.Extra = nil, nil
	for _, k := range kinds {
		switch k {
		case ServeCacheNative:
			o.Cache, o.CacheID = nativeCache, serve.CacheID()
		case ServeCacheJSON:
			c := JSONCache()
			c.Top = opmTop(opmcache.JSONTop)
			o.Extra = append(o.Extra, c)
		case ServeCachePogreb:
			o.Extra = append(o.Extra, ExtraCache{ID: opmcache.PogrebID, Dir: opmcache.Dir, Top: opmTop(opmcache.PogrebTop)})
		default:
			return fmt.Errorf("unknown serve cache %q", k)
		}
	}
	return o.checkExtra()
}

// nativeCache returns the cache file for the image's server. It lists its source files: the server uses it only while
// they are unchanged.
func nativeCache(c PackageCatalog) (CacheFile, error) {
	sources := make([]serve.SourceFile, len(c.Sources))
	for i, s := range c.Sources {
		sources[i] = serve.SourceFile{Name: s.Name, Size: s.Size, Digest: s.Digest, Packages: 1}
	}
	var notices []string
	large := func(l serve.LargeBundle) {
		notices = append(notices, fmt.Sprintf("bundle %q in channel %q of package %q: an answer of %d bytes is larger than clients receive by default (%d)",
			l.Bundle, l.Channel, l.Package, l.Size, serve.ClientMessageLimit))
	}
	content, err := serve.EncodePackageFunc(c.Catalog, large, sources...)
	return CacheFile{Name: serve.CacheFileName(c.Package), Content: content, Notices: notices}, err
}

// JSONCache is the part of [ServeCacheJSON] in package layers.
func JSONCache() ExtraCache {
	return ExtraCache{ID: opmcache.JSONID, Dir: opmcache.Dir, Package: func(c PackageCatalog) ([]layers.Entry, error) {
		return opmcache.JSONEntries(c.Catalog)
	}}
}

// opmTop adapts a function of package opmcache to [ExtraCache].
func opmTop(top func(context.Context, string, []opmcache.Package) ([]layers.Entry, error)) func(context.Context, WholeCatalog) ([]layers.Entry, error) {
	return func(ctx context.Context, w WholeCatalog) ([]layers.Entry, error) {
		all := make([]opmcache.Package, len(w.Packages))
		for i, p := range w.Packages {
			all[i] = opmcache.Package{Name: p.Package, Files: p.Files}
		}
		return top(ctx, w.Dir, all)
	}
}
