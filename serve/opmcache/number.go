package opmcache

import (
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/opmformat"
)

// rounded is a catalog with the numbers that opm reads. It shares everything else with c, which stays as it is.
func rounded(c *declcfg.Catalog) (*declcfg.Catalog, error) {
	out := &declcfg.Catalog{
		Packages: c.Packages, Channels: c.Channels, Deprecations: c.Deprecations,
		Bundles: slices.Clone(c.Bundles), Others: slices.Clone(c.Others),
	}
	for i := range out.Bundles {
		b := &out.Bundles[i]
		b.Properties = slices.Clone(b.Properties)
		for j := range b.Properties {
			p := &b.Properties[j]
			if p.Type == declcfg.PropertyBundleObject {
				continue // a string
			}
			value, err := opmformat.AppendNumbers(make([]byte, 0, len(p.Value)), p.Value)
			if err != nil {
				return nil, fmt.Errorf("package %q, bundle %q, property of type %q: %w", b.Package, b.Name, p.Type, err)
			}
			p.Value = value
		}
	}
	for i := range out.Others {
		m := &out.Others[i]
		blob, err := opmformat.AppendNumbers(make([]byte, 0, len(m.Blob)), m.Blob)
		if err != nil {
			return nil, fmt.Errorf("blob of schema %q, package %q, name %q: %w", m.Schema, m.Package, m.Name, err)
		}
		m.Blob = blob
	}
	return out, nil
}
