package declcfg

// ByPackage divides a catalog by package. Blobs keep their order and share memory with the catalog, which must not
// change while the parts are in use; blobs of no package have the empty name.
func (c *Catalog) ByPackage() map[string]*Catalog {
	parts := map[string]*Catalog{}
	part := func(name string) *Catalog {
		p := parts[name]
		if p == nil {
			p = &Catalog{}
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
		// Consecutive bundles are not copied: they are most of a catalog.
		if n := len(p.Bundles); n == 0 {
			p.Bundles = c.Bundles[i : i+1 : i+1]
		} else if n <= i && &p.Bundles[0] == &c.Bundles[i-n] {
			p.Bundles = c.Bundles[i-n : i+1 : i+1]
		} else {
			p.Bundles = append(p.Bundles, c.Bundles[i])
		}
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
