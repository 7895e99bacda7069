package canon

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

// quoted reads the single- or double-quoted scalar at i and returns the offset after it. It may span several lines only
// if lines is true.
func (r *fastReader) quoted(i int, lines bool) int {
	if r.src[i] == '\'' {
		return r.singleQuoted(i+1, lines)
	}
	return r.doubleQuoted(i+1, lines)
}

func (r *fastReader) doubleQuoted(i int, lines bool) int {
	src := r.src
	r.dst = append(r.dst, '"')
	solid := len(r.dst) // escaped spaces before this offset are not removed at a line break
	for start := i; ; {
		i = textPrefix(src, i)
		switch c := src[i]; {
		case c == '"':
			r.dst = append(r.dst, src[start:i+1]...)
			return i + 1
		case c == '\\':
			switch src[i+1] {
			case '"', '\\', 'n', 't', 'r', 'b', 'f': // the same in JSON
				i += 2
				continue
			}
			r.dst = append(r.dst, src[start:i]...)
			if src[i+1] == '\n' {
				var breaks int
				if i, breaks = r.foldedLine(i+1, lines); i < 0 {
					return -1
				}
				r.lineFeeds(breaks - 1)
			} else {
				u, size := yamlEscape(src[i:])
				if size == 0 {
					return -1
				}
				r.dst = appendRune(r.dst, u)
				i += size
			}
			solid, start = len(r.dst), i
		case c == '\n':
			r.dst = append(r.dst, src[start:i]...)
			r.trimSpaces(solid)
			var breaks int
			if i, breaks = r.foldedLine(i, lines); i < 0 {
				return -1
			}
			r.fold(breaks)
			solid, start = len(r.dst), i
		case c < 0x20 || c == 0x7f:
			return -1
		default:
			size := runeSize(src, i)
			if size == 0 {
				return -1
			}
			i += size
		}
	}
}

func (r *fastReader) singleQuoted(i int, lines bool) int {
	src := r.src
	r.dst = append(r.dst, '"')
	solid := len(r.dst)
	for start := i; ; {
		for i+8 <= len(src) {
			if m := singleStop(binary.LittleEndian.Uint64(src[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		switch c := src[i]; {
		case c == '\'':
			r.dst = append(r.dst, src[start:i]...)
			if src[i+1] != '\'' {
				r.dst = append(r.dst, '"')
				return i + 1
			}
			r.dst = append(r.dst, '\'')
			i += 2
			start = i
		case c == '"' || c == '\\':
			r.dst = append(r.dst, src[start:i]...)
			r.dst = append(r.dst, '\\', c)
			i++
			start = i
		case c == '\n':
			r.dst = append(r.dst, src[start:i]...)
			r.trimSpaces(solid)
			var breaks int
			if i, breaks = r.foldedLine(i, lines); i < 0 {
				return -1
			}
			r.fold(breaks)
			solid, start = len(r.dst), i
		case c < 0x20 || c == 0x7f:
			return -1
		case c >= utf8.RuneSelf:
			size := runeSize(src, i)
			if size == 0 {
				return -1
			}
			i += size
		default: // fewer than eight bytes were left
			i++
		}
	}
}

func (r *fastReader) trimSpaces(solid int) {
	n := len(r.dst)
	for n > solid && r.dst[n-1] == ' ' {
		n--
	}
	r.dst = r.dst[:n]
}

// foldedLine goes from the line break at i in a quoted scalar to the next text in it and counts the line breaks.
func (r *fastReader) foldedLine(i int, lines bool) (next, breaks int) {
	src := r.src
	for lines {
		i++
		breaks++
		start := i
		i = skipSpaces(src, i)
		if i >= len(src) || src[i] == '\t' {
			return -1, 0
		}
		if c := src[i]; c != '\n' {
			if i == start && (c == '-' || c == '.') && src[i+1] == c {
				return -1, 0 // possibly a document marker
			}
			return i, breaks
		}
	}
	return -1, 0
}

// yamlEscape returns the rune of the escape at the start of s and the escape's length, 0 if it is not an escape.
func yamlEscape(s []byte) (rune, int) {
	digits := 0
	switch s[1] {
	case '0':
		return 0, 2
	case 'a':
		return 7, 2
	case 'v':
		return 0xb, 2
	case 'e':
		return 0x1b, 2
	case ' ', '\'':
		return rune(s[1]), 2
	case 'N':
		return 0x85, 2
	case '_':
		return 0xa0, 2
	case 'L':
		return 0x2028, 2
	case 'P':
		return 0x2029, 2
	case 'x':
		digits = 2
	case 'u':
		digits = 4
	case 'U':
		digits = 8
	default:
		return 0, 0
	}
	if len(s) < 2+digits {
		return 0, 0
	}
	text := append([]byte("00"), s[2:2+digits]...)
	if digits > 2 {
		text = text[2:]
	}
	u := hex4(text)
	if digits == 8 {
		l := hex4(text[4:])
		if u < 0 || l < 0 || u > 0x10 {
			return 0, 0
		}
		u = u<<16 | l
	}
	if !utf8.ValidRune(u) {
		return 0, 0
	}
	return u, 2 + digits
}
