//go:build !linux

package serve

// writeProcess adds nothing: only Linux has /proc.
func writeProcess(*promText) {}
