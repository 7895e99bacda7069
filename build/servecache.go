package build

import (
	"fmt"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/serve"
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

// SetServeCaches sets the serve caches of the image. Without any the server reads the catalog when it starts.
func (o *Options) SetServeCaches(kinds ...ServeCache) error {
	o.caches = cataloglayer.Caches{}
	for _, k := range kinds {
		switch k {
		case ServeCacheNative:
			o.caches.Native, o.caches.NativeID = cataloglayer.Native, serve.CacheID()
		case ServeCacheJSON:
			o.caches.Extra = append(o.caches.Extra, cataloglayer.JSON())
		case ServeCachePogreb:
			o.caches.Extra = append(o.caches.Extra, cataloglayer.Pogreb())
		default:
			return fmt.Errorf("unknown serve cache %q", k)
		}
	}
	return o.caches.Check()
}

// extraDir is the cache directory passed to the server; empty for the native cache or none. A base's server does not
// support the native cache.
func (o *Options) extraDir() string {
	if len(o.caches.Extra) == 0 || o.caches.Native != nil && len(o.Servers) > 0 {
		return ""
	}
	return o.caches.Extra[0].Dir
}
