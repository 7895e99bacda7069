package printable

import (
	"strings"
	"unicode"
)

// NoControl reports whether a text has no control characters.
func NoControl(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return unicode.IsControl(r) })
}
