package fault

import (
	"strconv"
	"unicode/utf8"
)

// MaxShort is how many bytes of outside text [Short] and [Quote] keep: names have 253 at most, image references seldom
// more.
const MaxShort = 300

// Clip shortens outside text for a message to at most most bytes and an ellipsis. It cuts at the start of a rune.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "..."
}

// Short clips outside text to [MaxShort] bytes.
func Short(s string) string { return Clip(s, MaxShort) }

// Quote quotes outside text for a message, clipped to [MaxShort] bytes.
func Quote(s string) string { return strconv.Quote(Short(s)) }
