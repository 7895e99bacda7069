package declcfg
func (b *Bundle) substitutes() bool { return false }
