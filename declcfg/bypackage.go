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
	for b := range c.All() {
		if _, ok := b.(*Bundle); !ok {
			part(b.BlobPackage()).Add(b)
		}
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
	return parts
}
