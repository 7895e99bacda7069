//go:build !unix

package serve_test

// systemDamages needs files that this system does not have.
func systemDamages() []damage { return nil }
