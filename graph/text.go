package graph

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible returns s with everything that is not printable as a Go escape: control characters, invalid UTF-8, and the
// characters that reverse the direction of reading.
func visible(s string) string {
	clean := utf8.ValidString(s)
	for _, r := range s {
		clean = clean && unicode.IsPrint(r)
	}
	if clean {
		return s
	}
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}
