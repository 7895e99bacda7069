//go:build !linux

package atomicfs

// Exchange swaps two directories, by renames.
func Exchange(a, b string) error { return exchangeByRenames(a, b) }
