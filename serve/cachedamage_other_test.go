//go:build !unix

package serve_test

// systemDamages returns none: they need files that this system does not have.
func systemDamages() []damage { return nil }
