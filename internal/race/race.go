//go:build race

// Package race tells tests whether the race detector is on: a program with it takes several times the memory, and is linked
// dynamically.
package race

// Enabled reports whether the race detector is on.
const Enabled = true
