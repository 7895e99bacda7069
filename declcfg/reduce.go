package declcfg

// Reduce drops the values of the bundle's olm.bundle.object and olm.csv.metadata properties after checking them, as a
// skeleton load does: the bundle still validates as before, but cannot be written any more.
func (b *Bundle) Reduce() { b.reduce() }
