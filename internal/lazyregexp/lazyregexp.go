// Package lazyregexp compiles regular expressions when they are first used: most runs of a command use few of them, and
// one with a long repetition takes a part of a millisecond.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns what compiles a pattern once. It is safe for concurrent use and panics for a pattern that is none.
func New(pattern string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(pattern) })
}
