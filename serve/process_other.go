//go:build !unix

package serve

// fileLimit returns how many files the process may have open at once, which is unknown.
func fileLimit() (int, bool) { return 0, false }
