package graph

import (
	"errors"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// Options configure SVG, HTML and DOT drawings. The zero value draws the whole catalog.
type Options struct {
	// Package is the only package to draw; all where empty.
	Package string
	// Channels are the only channels to draw; all where empty.
	Channels []string
}

// Select returns the selected part of a catalog: the package, and of its blobs the channels and the bundles that are in
// them, or in no channel at all. It shares memory with the catalog, which is not modified. An unknown package or
// channel is an error.
func (o Options) Select(c *declcfg.Catalog) (*declcfg.Catalog, error) {
	if o.Package == "" && len(o.Channels) == 0 {
		return c, nil
	}
	mine := func(pkg string) bool { return o.Package == "" || pkg == o.Package }
	out := &declcfg.Catalog{}
	for _, p := range c.Packages {
		if mine(p.Name) {
			out.Packages = append(out.Packages, p)
		}
	}
	found := map[string]bool{}
	packages := map[string]bool{}
	chosen := map[[2]string]bool{} // bundles of the channels
	known := map[[2]string]bool{}  // bundles of any channel
	for _, ch := range c.Channels {
		if !mine(ch.Package) {
			continue
		}
		in := len(o.Channels) == 0 || slices.Contains(o.Channels, ch.Name)
		if in {
			found[ch.Name], packages[ch.Package] = true, true
			out.Channels = append(out.Channels, ch)
		}
		for _, e := range ch.Entries {
			known[[2]string{ch.Package, e.Name}] = true
			if in {
				chosen[[2]string{ch.Package, e.Name}] = true
			}
		}
	}
	for _, b := range c.Bundles {
		key := [2]string{b.Package, b.Name}
		if mine(b.Package) && (chosen[key] || !known[key] && len(o.Channels) == 0) {
			out.Bundles = append(out.Bundles, b)
		}
	}
	for _, d := range c.Deprecations {
		if mine(d.Package) {
			out.Deprecations = append(out.Deprecations, d)
		}
	}
	if len(out.Packages)+len(out.Channels)+len(out.Bundles) == 0 && o.Package != "" {
		e := &declcfg.NotFoundError{Kind: "package", Name: o.Package}
		for _, p := range c.Packages {
			e.Known = append(e.Known, p.Name)
		}
		return nil, e
	}
	var missing []error
	for _, name := range o.Channels {
		if !found[name] {
			e := &declcfg.NotFoundError{Kind: "channel", Name: name}
			for _, ch := range c.Channels {
				if mine(ch.Package) {
					e.Known = append(e.Known, ch.Name)
				}
			}
			missing = append(missing, e)
		}
	}
	if len(missing) > 0 {
		return nil, errors.Join(missing...)
	}
	if len(o.Channels) > 0 {
		// Packages without any of the channels would be empty pictures.
		out.Packages = slices.DeleteFunc(out.Packages, func(p declcfg.Package) bool { return !packages[p.Name] })
	}
	return out, nil
}
