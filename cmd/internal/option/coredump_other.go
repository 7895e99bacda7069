//go:build !unix

package option

// ForbidCoreDumps does nothing: this system writes no core dumps.
func ForbidCoreDumps() {}
