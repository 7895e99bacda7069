package web

import (
	"cmp"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// view is a package as its pages show it.
type view struct {
	*declcfg.Catalog
	summary    *packageSummary
	pkg        *declcfg.Package
	deprecated map[declcfg.Reference]string
	versions   map[string]declcfg.VersionRelease
	in         map[string][]string // the channels of bundles
	there      map[string]bool     // existing bundles
	heads      map[string]string   // by channel
}

// view reads a package without manifests.
func (p *page) view(name string) (*view, error) {
	i, ok := p.c.byName[name]
	if !ok {
		return nil, errNotFound
	}
	c, err := p.c.catalog(p.ctx, name)
	if err != nil {
		return nil, err
	}
	if len(c.Packages) == 0 {
		return nil, errNotFound
	}
	v := &view{
		Catalog:    c,
		summary:    &p.c.packages[i],
		pkg:        &c.Packages[0],
		deprecated: map[declcfg.Reference]string{},
		versions:   map[string]declcfg.VersionRelease{},
		in:         map[string][]string{},
		there:      map[string]bool{},
		heads:      map[string]string{},
	}
	for _, d := range c.Deprecations {
		for _, e := range d.Entries {
			r := e.Reference
			if r.Schema == declcfg.SchemaPackage {
				r.Name = ""
			}
			v.deprecated[r] = e.Message
		}
	}
	for i := range c.Bundles {
		v.there[c.Bundles[i].Name] = true
		if version, err := c.Bundles[i].VersionRelease(); err == nil {
			v.versions[c.Bundles[i].Name] = version
		}
	}
	slices.SortStableFunc(c.Bundles, func(a, b declcfg.Bundle) int { return v.newer(a.Name, b.Name) })
	for i, ch := range c.Channels {
		v.heads[ch.Name] = head(&c.Channels[i])
		for _, e := range ch.Entries {
			v.in[e.Name] = append(v.in[e.Name], ch.Name)
		}
	}
	slices.SortStableFunc(c.Channels, func(a, b declcfg.Channel) int {
		return cmp.Or(
			-compareBool(a.Name == v.pkg.DefaultChannel, b.Name == v.pkg.DefaultChannel),
			v.newer(v.heads[a.Name], v.heads[b.Name]),
			cmp.Compare(a.Name, b.Name))
	})
	return v, nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// newer orders bundles: newest first, those without a version last.
func (v *view) newer(a, b string) int {
	x, hasX := v.versions[a]
	y, hasY := v.versions[b]
	return cmp.Or(-compareBool(hasX, hasY), y.Compare(x), cmp.Compare(b, a))
}

func (v *view) version(bundle string) string {
	if version, ok := v.versions[bundle]; ok {
		return name(version.String())
	}
	return ""
}
