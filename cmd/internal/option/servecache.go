package option

import (
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// cacheNone is the value of --cache for an image without a serve cache.
const cacheNone build.ServeCache = "none"

// cacheKinds are the values of --cache.
var cacheKinds = []build.ServeCache{build.ServeCacheNative, build.ServeCacheJSON, build.ServeCachePogreb, cacheNone}

// cacheNames lists the values of --cache for messages.
func cacheNames() string {
	var names []string
	for _, k := range cacheKinds {
		names = append(names, string(k))
	}
	return strings.Join(names, "|")
}

// ServeCaches reads [Layers.CacheFlag] without duplicates and in a fixed order.
func (o *Layers) ServeCaches() ([]build.ServeCache, error) {
	given, err := cmdline.List(o.Caches.Value())
	if err != nil {
		return nil, err
	}
	if len(given) == 0 {
		return []build.ServeCache{build.ServeCacheNative}, nil
	}
	var kinds []build.ServeCache
	for _, k := range cacheKinds {
		if slices.Contains(given, string(k)) {
			kinds = append(kinds, k)
		}
	}
	for _, g := range given {
		if !slices.Contains(cacheKinds, build.ServeCache(g)) {
			return nil, cmdline.Usagef("invalid --cache value %q, expected (%s)", g, cacheNames())
		}
	}
	switch {
	case len(kinds) > 1 && slices.Contains(kinds, cacheNone):
		return nil, cmdline.Usagef("--cache none cannot be combined with other --cache values")
	case slices.Contains(kinds, build.ServeCacheJSON) && slices.Contains(kinds, build.ServeCachePogreb):
		return nil, cmdline.Usagef("--cache %s and --cache %s use the same directory: opm reads only one of them",
			build.ServeCacheJSON, build.ServeCachePogreb)
	}
	return kinds, nil
}

// SetCaches adds the requested caches to the image.
func (o *Image) SetCaches(p *Session, with *build.Options) error {
	kinds, err := o.ServeCaches()
	if err != nil {
		return err
	}
	if s := o.ServerName; kinds[0] != build.ServeCacheNative && kinds[0] != cacheNone && with.Base == nil &&
		(s == "" || s == "embedded") {
		p.Log.Warn("the server in the image does not read --cache " + string(
			kinds[0]) + " and builds its own cache at every start: add --cache native, or serve the image with opm")
	}
	if kinds[0] == cacheNone {
		return nil
	}
	return with.SetServeCaches(kinds...)
}
