//go:build !linux

package atomicfs

func exchange(a, b string) error { return exchangeByRenames(a, b) }
