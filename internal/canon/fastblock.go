package canon

import "unicode/utf8"

// block reads the literal or folded scalar whose indicator is at i and goes to the next token.
func (r *fastReader) block(i, parent int) bool {
	src := r.src
	literal := src[i] == '|'
	var chomp byte
	indent := 0
	for i++; src[i] != '\n'; i++ {
		switch c := src[i]; {
		case (c == '+' || c == '-') && chomp == 0:
			chomp = c
		case '1' <= c && c <= '9' && indent == 0:
			indent = max(parent, 0) + int(c-'0')
		case c == ' ':
			if i = skipSpaces(src, i); src[i] != '\n' {
				return false
			}
			i--
		default:
			return false
		}
	}
	i++
	b := blockScalar{indent: indent, parent: parent}
	if i = b.breaks(src, i); i < 0 {
		return false
	}
	r.dst = append(r.dst, '"')
	var ended, blank bool // a line has ended; it began with a blank
	for b.content && i < len(src) {
		nowBlank := src[i] == ' ' || src[i] == '\t'
		switch {
		case !ended:
		case !literal && !blank && !nowBlank:
			if b.empty == 0 {
				r.dst = append(r.dst, ' ')
			}
		default:
			r.dst = append(r.dst, '\\', 'n')
		}
		r.lineFeeds(b.empty)
		blank, ended = nowBlank, true
		if i = r.blockLine(i); i < 0 {
			return false
		}
		if i = b.breaks(src, i+1); i < 0 {
			return false
		}
	}
	if r.unfinished && i >= len(src) {
		return false
	}
	if chomp != '-' && ended {
		r.dst = append(r.dst, '\\', 'n')
	}
	if chomp == '+' {
		r.lineFeeds(b.empty)
	}
	r.dst = append(r.dst, '"')
	return r.line(b.start) && r.col <= parent
}

// blockLine writes the line at i and returns the offset of its line break.
func (r *fastReader) blockLine(i int) int {
	src := r.src
	for start := i; ; {
		i = textPrefix(src, i)
		switch c := src[i]; {
		case c == '\n':
			r.dst = append(r.dst, src[start:i]...)
			return i
		case c == '"' || c == '\\':
			r.dst = append(r.dst, src[start:i]...)
			r.dst = append(r.dst, '\\', c)
			i++
			start = i
		case c == '\t':
			r.dst = append(r.dst, src[start:i]...)
			r.dst = append(r.dst, '\\', 't')
			i++
			start = i
		case c < utf8.RuneSelf:
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

// blockScalar keeps the state between the lines of a block scalar.
type blockScalar struct {
	indent  int // 0 until the first line with text determines it
	parent  int
	empty   int  // line breaks before that text
	content bool // there is more text at the indentation
	start   int  // offset of the line in which that was determined
}

// breaks skips empty lines and indentation from the start of a line. The library includes the longest of the leading
// empty lines in the indentation, and so does this.
func (b *blockScalar) breaks(src []byte, i int) int {
	b.empty = 0
	longest, col := 0, 0
	for {
		b.start = i
		text := i
		if b.indent == 0 {
			text = skipSpaces(src, i)
		} else {
			for text < len(src) && text-i < b.indent && src[text] == ' ' {
				text++
			}
		}
		col = text - i
		i = text
		longest = max(longest, col)
		if i >= len(src) {
			break
		}
		if src[i] == '\t' && (b.indent == 0 || col < b.indent) {
			return -1
		}
		if src[i] != '\n' {
			break
		}
		b.empty++
		i++
	}
	if b.indent == 0 {
		b.indent = max(longest, b.parent+1, 1)
	}
	b.content = col == b.indent
	return i
}
