package fault

import (
	"strconv"
	"unicode/utf8"
)

// MaxShort is the length in bytes to which [Short] and [Quote] cut quoted input: names have at most 253 bytes, image
// references seldom more.
const MaxShort = 300

// Clip shortens quoted input to at most most bytes and an ellipsis. It cuts at the start of a rune.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most] + "..."
}

// Short clips quoted input to [MaxShort] bytes.
func Short(s string) string { return Clip(s, MaxShort) }

// Quote quotes input for a message, clipped to [MaxShort] bytes.
func Quote(s string) string { return strconv.Quote(Short(s)) }
