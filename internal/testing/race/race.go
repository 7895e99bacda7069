//go:build race

// Package race reports whether the race detector is on: it multiplies the memory of a program and links it dynamically.
package race

// Enabled reports whether the race detector is on.
const Enabled = true
