package printable

import (
	"bytes"
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// JSON returns a text in JSON in which everything that could control a terminal is escaped. Its meaning stays: such
// characters are only in strings, where those of ASCII are escaped already. Content of a user may pass through it: credentials stay.
func JSON(text []byte) []byte {
	if printable(string(text)) {
		return text
	}
	var b bytes.Buffer
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case Rune(r):
			b.Write(text[:n])
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		text = text[n:]
	}
	return b.Bytes()
}
