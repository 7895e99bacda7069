package canon

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	low  = 0x0101010101010101
	high = 0x8080808080808080
)

// findSpecial has the high bit set in the lowest byte of w that may not be copied into a JSON string unchanged: a
// control character, a quote, a backslash, or a byte of a multi-byte rune. Higher bytes may be marked wrongly.
func findSpecial(w uint64) uint64 {
	return ((w - low*0x20) | ((w ^ low*'"') - low) | ((w ^ low*'\\') - low) | w) & high
}

// plainPrefix returns the index of the first byte of s from i on that may not be copied into a JSON string unchanged.
// It reads eight bytes at a time: megabytes of base64 pass through it.
func plainPrefix(s []byte, i int) int {
	for i+8 <= len(s) {
		if m := findSpecial(binary.LittleEndian.Uint64(s[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(s) {
		c := s[i]
		if c < 0x20 || c == '"' || c == '\\' || c >= 0x80 {
			return i
		}
		i++
	}
	return i
}

const hexDigits = "0123456789abcdef"

// appendEscaped appends text as the inside of a JSON string, escaped as encoding/json does without HTML escaping.
// Invalid UTF-8 becomes U+FFFD.
func appendEscaped(dst, text []byte) []byte {
	start := 0
	for i := plainPrefix(text, 0); i < len(text); i = plainPrefix(text, i) {
		if c := text[i]; c < utf8.RuneSelf {
			dst = append(dst, text[start:i]...)
			dst = appendRune(dst, rune(c))
			i++
			start = i
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if r == '\u2028' || r == '\u2029' || r == utf8.RuneError && size == 1 {
			dst = append(dst, text[start:i]...)
			dst = appendRune(dst, r)
			start = i + size
		}
		i += size
	}
	return append(dst, text[start:]...)
}

// appendRune appends one rune as encoding/json writes it within a string.
func appendRune(dst []byte, r rune) []byte {
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\b':
		return append(dst, '\\', 'b')
	case '\f':
		return append(dst, '\\', 'f')
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	case '\u2028', '\u2029':
		return append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&0xf])
	}
	if r < 0x20 {
		return append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&0xf])
	}
	return utf8.AppendRune(dst, r)
}

// hex4 returns the value of four hexadecimal digits at the start of s, or -1.
func hex4(s []byte) rune {
	if len(s) < 4 {
		return -1
	}
	var r rune
	for _, c := range s[:4] {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c && c <= 'f':
			c -= 'a' - 10
		case 'A' <= c && c <= 'F':
			c -= 'A' - 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// unescape returns the rune of the JSON escape at the start of s (which begins with a backslash) and the escape's
// length; the length is 0 if it is not a valid escape, lone surrogates included.
func unescape(s []byte) (rune, int) {
	if len(s) < 2 {
		return 0, 0
	}
	switch s[1] {
	case '"', '\\', '/':
		return rune(s[1]), 2
	case 'b':
		return '\b', 2
	case 'f':
		return '\f', 2
	case 'n':
		return '\n', 2
	case 'r':
		return '\r', 2
	case 't':
		return '\t', 2
	case 'u':
		r := hex4(s[2:])
		if r < 0 {
			return 0, 0
		}
		if !utf16.IsSurrogate(r) {
			return r, 6
		}
		if len(s) < 12 || s[6] != '\\' || s[7] != 'u' {
			return 0, 0
		}
		r = utf16.DecodeRune(r, hex4(s[8:]))
		if r == utf8.RuneError {
			return 0, 0
		}
		return r, 12
	}
	return 0, 0
}

// decodeString returns the text of a canonical JSON string, given without its quotes.
func decodeString(s []byte) []byte {
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); {
		if s[i] != '\\' {
			out = append(out, s[i])
			i++
			continue
		}
		r, size := unescape(s[i:])
		out = utf8.AppendRune(out, r)
		i += max(size, 1)
	}
	return out
}
