package web

import (
	"cmp"
	"sort"

	"github.com/operator-bindery/bindery/declcfg"
)

// view is a package as its pages show it. It is not changed.
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

// view returns the package that the page is about.
func (p *page) view(name string) (*view, error) {
	read := p.readView
	if p.files != nil {
		read = p.files.view
	}
	v, err := read(name)
	if err == nil {
		p.of = v.summary
	}
	return v, err
}

// readView reads a package without manifests.
func (p *page) readView(name string) (*view, error) {
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
	sort.SliceStable(c.Bundles, func(i, j int) bool { return v.newer(c.Bundles[i].Name, c.Bundles[j].Name) < 0 })
	for i, ch := range c.Channels {
		v.heads[ch.Name] = head(&c.Channels[i])
	}
	sort.SliceStable(c.Channels, func(i, j int) bool {
		a, b := c.Channels[i].Name, c.Channels[j].Name
		return cmp.Or(
			-compareBool(a == v.pkg.DefaultChannel, b == v.pkg.DefaultChannel),
			v.newer(v.heads[a], v.heads[b]),
			cmp.Compare(a, b)) < 0
	})
	sort.SliceStable(c.Others, func(i, j int) bool {
		a, b := &c.Others[i], &c.Others[j]
		return cmp.Or(cmp.Compare(a.Schema, b.Schema), cmp.Compare(a.Name, b.Name)) < 0
	})
	for _, ch := range c.Channels {
		for _, e := range ch.Entries {
			v.in[e.Name] = append(v.in[e.Name], ch.Name)
		}
	}
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
