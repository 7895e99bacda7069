package appregistry

import "github.com/operator-bindery/bindery/declcfg"

// Skeleton is the catalog without the manifests of bundles, in writing order.
func (t *Tree) Skeleton() *declcfg.Catalog {
	c := &declcfg.Catalog{}
	for _, p := range t.packages {
		c.Append(p.skeleton)
	}
	return c
}
