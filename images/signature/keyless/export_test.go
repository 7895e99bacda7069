package keyless

// At returns the instance whose repository is at a URL and has a first root of trust.
func (p Public) At(url string, root []byte) Public {
	p.url, p.root = url, root
	return p
}

// Check is what services must pass to sign with them.
func (s Services) Check() error { return s.check() }
