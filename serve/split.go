package serve

import (
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// split divides a catalog by package, without copying blobs. The blobs of no package are under the empty name.
func split(c *declcfg.Catalog) map[string]*declcfg.Catalog {
	parts := map[string]*declcfg.Catalog{}
	part := func(name string) *declcfg.Catalog {
		p, ok := parts[name]
		if !ok {
			p = &declcfg.Catalog{}
			parts[name] = p
		}
		return p
	}
	for i := range c.Packages {
		p := part(c.Packages[i].Name)
		p.Packages = append(p.Packages, c.Packages[i])
	}
	for i := range c.Channels {
		p := part(c.Channels[i].Package)
		p.Channels = append(p.Channels, c.Channels[i])
	}
	for i := range c.Bundles {
		p := part(c.Bundles[i].Package)
		p.Bundles = append(p.Bundles, c.Bundles[i])
	}
	for i := range c.Deprecations {
		p := part(c.Deprecations[i].Package)
		p.Deprecations = append(p.Deprecations, c.Deprecations[i])
	}
	for i := range c.Others {
		p := part(c.Others[i].Package)
		p.Others = append(p.Others, c.Others[i])
	}
	return parts
}

func sortedNames[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
