package canon

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"strings"
	"unicode/utf8"
)

// textStop has the high bit set in the lowest byte of w that needs a check in YAML text: one that JSON escapes, a
// control character, or a byte of a multi-byte rune.
func textStop(w uint64) uint64 { return findSpecial(w) | (w+low)&high }

// plainStop is like textStop, for plain scalars, which also end at colons and number signs.
func plainStop(w uint64) uint64 {
	quoteOrSign := (w^low*'"')&^low - low // a number sign is the byte that follows the quote in ASCII
	return ((w - low*0x20) | quoteOrSign | ((w ^ low*'\\') - low) | ((w ^ low*':') - low) | (w + low) | w) & high
}

// singleStop is like textStop, for single-quoted scalars.
func singleStop(w uint64) uint64 { return textStop(w) | ((w^low*'\'')-low)&high }

// textPrefix returns the offset of the first byte from i on that textStop stops at.
func textPrefix(src []byte, i int) int {
	for i+8 <= len(src) {
		if m := textStop(binary.LittleEndian.Uint64(src[i:])); m != 0 {
			return i + bits.TrailingZeros64(m)>>3
		}
		i += 8
	}
	for i < len(src) && src[i] >= 0x20 && src[i] != '"' && src[i] != '\\' && src[i] < 0x7f {
		i++
	}
	return i
}

// runeSize returns the length of the multi-byte rune at i; 0 if YAML does not allow it or treats it as a line break.
func runeSize(src []byte, i int) int {
	u, size := utf8.DecodeRune(src[i:])
	switch {
	case u == utf8.RuneError && size == 1, u < 0xa0, u == '\u2028', u == '\u2029', u == 0xfeff, u == 0xfffe,
		u == 0xffff:
		return 0
	}
	return size
}

// span is the part of a plain scalar in one line.
type span struct {
	end     int  // offset after its last character; -1 to give up
	stop    int  // offset of the line break or comment after it
	colon   bool // it is a key: the colon is at end
	comment bool // a comment follows
	escape  bool // it has characters that JSON escapes
}

var plainStarts = func() (t [256]bool) {
	for c := range t {
		t[c] = c > ' ' && c != 0x7f && strings.IndexByte("?:,[]{}#&*!|>'\"%@`", byte(c)) < 0
	}
	return t
}()

// plainLine finds the end of a plain scalar in the line of i.
func (r *fastReader) plainLine(i int) span {
	if !plainStarts[r.src[i]] {
		return span{end: -1}
	}
	return r.restOfPlain(i)
}

// restOfPlain is like plainLine, for the second and following lines, which may start with any character.
func (r *fastReader) restOfPlain(i int) (s span) {
	src, start := r.src, i
	for {
		for i+8 <= len(src) {
			if m := plainStop(binary.LittleEndian.Uint64(src[i:])); m != 0 {
				i += bits.TrailingZeros64(m) >> 3
				break
			}
			i += 8
		}
		switch c := src[i]; {
		case c == '\n':
			return s.endAt(src, i)
		case c == ':':
			if next := src[i+1]; next == ' ' || next == '\n' {
				s.colon, s.end = true, i
				if i > start && src[i-1] == ' ' {
					s.end = -1
				}
				return s
			}
			i++
		case c == '#':
			if i > start && src[i-1] == ' ' {
				s.comment = true
				return s.endAt(src, i)
			}
			i++
		case c == '"' || c == '\\':
			s.escape = true
			i++
		case c < 0x20 || c == 0x7f:
			return span{end: -1}
		case c >= utf8.RuneSelf:
			size := runeSize(src, i)
			if size == 0 {
				return span{end: -1}
			}
			i += size
		default: // fewer than eight bytes were left
			i++
		}
	}
}

// endAt ends a span at offset i, excluding the spaces before it.
func (s span) endAt(src []byte, i int) span {
	s.stop = i
	for src[i-1] == ' ' {
		i--
	}
	s.end = i
	return s
}

func (r *fastReader) appendText(text []byte, escape bool) {
	if escape {
		r.dst = appendEscaped(r.dst, text)
	} else {
		r.dst = append(r.dst, text...)
	}
}

// plain reads a plain scalar whose first line is known and goes to the next token.
func (r *fastReader) plain(i int, s span, parent int) bool {
	text, escape := r.src[i:s.end], s.escape
	if s.comment {
		end := comment(r.src, s.stop)
		return end >= 0 && r.nextLine(end) && r.col <= parent && r.plainValue(text, escape)
	}
	if !r.nextLine(s.stop) {
		return false
	}
	if r.col <= parent {
		return r.plainValue(text, escape)
	}
	r.dst = append(r.dst, '"')
	r.appendText(text, escape)
	for r.col > parent {
		if r.commented || r.col == 0 {
			return false
		}
		r.fold(r.breaks)
		i = r.pos
		if s = r.restOfPlain(i); s.end < 0 || s.colon {
			return false
		}
		r.appendText(r.src[i:s.end], s.escape)
		if s.comment {
			end := comment(r.src, s.stop)
			if end < 0 || !r.nextLine(end) || r.col > parent {
				return false
			}
		} else if !r.nextLine(s.stop) {
			return false
		}
	}
	r.dst = append(r.dst, '"')
	return true
}

// fold writes the replacement of n line breaks in a flow scalar: one becomes a space, n become n-1 line feeds.
func (r *fastReader) fold(n int) {
	if n == 1 {
		r.dst = append(r.dst, ' ')
		return
	}
	r.lineFeeds(n - 1)
}

func (r *fastReader) lineFeeds(n int) {
	for range n {
		r.dst = append(r.dst, '\\', 'n')
	}
}

// scalarHints reports for the first byte of a plain scalar whether it may be something else than a string.
var scalarHints = func() (t [256]bool) {
	for _, c := range "yYnNtTfFoO~.+-0123456789" {
		t[c] = true
	}
	return t
}()

// longestNumber is the maximum length of scalars that are tried as numbers here; longer ones go through the library.
const longestNumber = 300

// looksNumeric reports whether every byte of text may be part of a number.
func looksNumeric(text []byte) bool {
	for _, c := range text {
		if !('0' <= c && c <= '9' || c == '.' || c == '-' || c == '+' || c == '_' || 'a' <= c|0x20 && c|0x20 <= 'f' ||
			strings.IndexByte("xXoOpP", c) >= 0) {
			return false
		}
	}
	return true
}

// resolve returns the value of a plain scalar; ok is false if it is a string.
func resolve(text []byte) (m any, ok bool) {
	if !scalarHints[text[0]] {
		return nil, false
	}
	switch c := text[0]; {
	case 'A' <= c:
		return wordMeaning(text)
	case len(text) == 1: // a digit, or a sign on its own
	case c >= '0' && !looksNumeric(text):
		return nil, false
	case c == '-' && text[1] >= '0' && !looksNumeric(text):
		return nil, false
	case bytes.Count(text, []byte{'.'}) > 1:
		return nil, false
	}
	m = resolveScalar(string(text))
	_, isString := m.(string)
	return m, !isString
}

// plainValue writes a plain scalar of one line.
func (r *fastReader) plainValue(text []byte, escape bool) bool {
	if scalarHints[text[0]] && len(text) < longestNumber && isSimpleNumber(text) {
		r.dst = append(r.dst, text...)
		return true
	}
	if scalarHints[text[0]] && len(text) <= longestNumber {
		if m, ok := resolve(text); ok {
			v := value{}
			if f, isFloat := m.(float64); isFloat && (math.IsInf(f, 0) || math.IsNaN(f)) || v.setScalar(string(text),
				m) != nil {
				return false
			}
			if v.kind == kindNull {
				v.text = "null"
			}
			r.dst = append(r.dst, v.text...)
			return true
		}
	} else if scalarHints[text[0]] && (looksNumeric(text) || text[0] < '0') {
		return false
	}
	r.dst = append(r.dst, '"')
	r.appendText(text, escape)
	r.dst = append(r.dst, '"')
	return true
}

// isSimpleNumber reports whether text is a JSON number that YAML reads as a number too. Numbers with an exponent are
// not simple: YAML reads them as strings if they are out of range.
func isSimpleNumber(text []byte) bool {
	return numberEnd(text, 0) == len(text) && bytes.IndexByte(text, 'e') < 0 && bytes.IndexByte(text, 'E') < 0
}

// plainKey writes a plain scalar as a key.
func (r *fastReader) plainKey(text []byte, escape bool) bool {
	if string(text) == "<<" {
		return false
	}
	if scalarHints[text[0]] {
		if m, ok := resolve(text); ok {
			name, err := keyText(m)
			if err != nil {
				return false
			}
			text, escape = []byte(name), false
		}
	}
	r.dst = append(r.dst, '"')
	r.appendText(text, escape)
	r.dst = append(r.dst, '"')
	return true
}
