package jsonscan

import (
	"strings"
	"unicode/utf8"
)

// FoldsTo reports whether a key other than the names is read as one of them by encoding/json, which ignores case. It
// returns true for keys with escapes, which are not decoded.
func FoldsTo(key []byte, names ...string) bool {
	for _, c := range key {
		if c == '\\' || c >= utf8.RuneSelf {
			return true
		}
	}
	for _, name := range names {
		if len(key) == len(name) && strings.EqualFold(string(key), name) {
			return true
		}
	}
	return false
}
