package appregistry

import "github.com/operator-bindery/bindery/declcfg"

// Skeleton returns the catalog in writing order, without the manifests of bundles.
func (t *Tree) Skeleton() *declcfg.Catalog {
	c := &declcfg.Catalog{}
	for _, p := range t.packages {
		c.Append(p.skeleton)
	}
	return c
}
