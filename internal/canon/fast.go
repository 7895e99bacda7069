package canon

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
)

// fastReader converts the regular subset of YAML in one pass, without tokens and without a tree: block mappings and
// sequences, scalars of every style, flow collections in JSON's syntax, and comments. On anything else, including
// errors, it gives up, and the YAML library reads the document.
//
// The rules are those of the library's scanner, where an indentation is the column of the innermost block collection.
// Methods that read take the start offset and return the offset at which they stopped, or -1 to give up. Methods that
// end at a new line leave the position of the next token in pos and col. The text ends with a line feed, so that loops
// over a line need no check for the end.
type fastReader struct {
	c          *Converter
	src        []byte
	dst        []byte
	pos        int // offset of the next token
	col        int // its column, -1 at the end
	breaks     int // line breaks before it
	depth      int
	max        Limits
	commented  bool // there were comments before it
	repeated   bool // a key was repeated
	unfinished bool // the last line feed is not in the document
}

// appendFast converts a document, or returns false and leaves dst unchanged.
func (c *Converter) appendFast(dst, doc []byte, l Limits) ([]byte, bool) {
	if len(doc) == 0 {
		return dst, false
	}
	c.members = c.members[:0]
	r := fastReader{c: c, src: doc, dst: slices.Grow(dst, len(doc)), max: l}
	if doc[len(doc)-1] != '\n' {
		c.spare = append(append(c.spare[:0], doc...), '\n')
		r.src, r.unfinished = c.spare, true
	}
	if !r.line(0) {
		return dst, false
	}
	if r.col < 0 {
		return append(r.dst, "null"...), true
	}
	if !r.node(-1) || r.col >= 0 || r.repeated {
		return dst, false
	}
	return r.dst, true
}

// nextLine goes from the line break at offset i to the next token.
func (r *fastReader) nextLine(i int) bool { return r.line(i + 1) }

// line goes from the start of a line to the next token. It gives up at document markers and at non-ASCII comments.
func (r *fastReader) line(i int) bool {
	src := r.src
	r.commented = false
	r.breaks = 1
	for {
		start := i
		i = skipSpaces(src, i)
		if i >= len(src) {
			r.pos, r.col = i, -1
			return true
		}
		switch src[i] {
		case '\n':
			i++
			r.breaks++
			continue
		case '#':
			if i = comment(src, i); i < 0 {
				return false
			}
			i++
			r.commented = true
			continue
		case '-', '.':
			if i == start && len(src)-i > 3 && src[i+1] == src[i] && src[i+2] == src[i] {
				return false
			}
		}
		r.pos, r.col = i, i-start
		return true
	}
}

// skipSpaces returns the offset of the first byte from i on that is not a space.
func skipSpaces(src []byte, i int) int {
	for i+8 <= len(src) {
		if d := binary.LittleEndian.Uint64(src[i:]) ^ low*' '; d != 0 {
			return i + bits.TrailingZeros64(d)>>3
		}
		i += 8
	}
	for i < len(src) && src[i] == ' ' {
		i++
	}
	return i
}

// comment returns the offset of the line break that ends the comment at i.
func comment(src []byte, i int) int {
	end := i + bytes.IndexByte(src[i:], '\n')
	for _, c := range src[i:end] {
		if c != '\t' && (c < ' ' || c >= 0x7f) {
			return -1
		}
	}
	return end
}

// lineEnd returns the offset of the line break after a node that ends at i, if only a comment is between.
func (r *fastReader) lineEnd(i int) int {
	end := skipSpaces(r.src, i)
	switch {
	case r.src[end] == '\n':
		return end
	case r.src[end] == '#' && end > i:
		return comment(r.src, end)
	}
	return -1
}

// isDash reports whether the token at i begins an item of a block sequence.
func (r *fastReader) isDash(i int) bool {
	return r.src[i] == '-' && (r.src[i+1] == ' ' || r.src[i+1] == '\n')
}

// node reads the block node at pos, which belongs to a collection at column parent.
func (r *fastReader) node(parent int) bool {
	i := r.pos
	switch r.src[i] {
	case '-':
		if r.isDash(i) {
			return r.sequence(r.col)
		}
	case '"', '\'':
		end := r.quotedEnd(i)
		if end > 0 && r.src[end] == ':' && (r.src[end+1] == ' ' || r.src[end+1] == '\n') {
			return r.mapping(r.col)
		}
		return r.value(i, parent)
	case '|', '>', '[', '{':
		return r.value(i, parent)
	}
	span := r.plainLine(i)
	switch {
	case span.end < 0:
		return false
	case span.colon:
		return r.mapping(r.col)
	}
	return r.plain(i, span, parent)
}

// quotedEnd returns the offset after the quoted scalar at i if it ends in the same line, else -1. Its result may be
// wrong for text that is refused later.
func (r *fastReader) quotedEnd(i int) int {
	quote := r.src[i]
	for i++; ; i++ {
		switch c := r.src[i]; {
		case c == '\n':
			return -1
		case c == '\\' && quote == '"':
			if i++; r.src[i] == '\n' {
				return -1
			}
		case c == quote:
			if quote == '\'' && r.src[i+1] == '\'' {
				i++
				continue
			}
			return i + 1
		}
	}
}

// value reads the node that begins at offset i, or on the following lines if the rest of this line is blank. parent is
// the column of the innermost collection.
func (r *fastReader) value(i, parent int) bool {
	src := r.src
	i = skipSpaces(src, i)
	switch c := src[i]; c {
	case '\n', '#':
		if c == '#' {
			if i = comment(src, i); i < 0 {
				return false
			}
		}
		if !r.nextLine(i) {
			return false
		}
		switch {
		case r.col > parent:
			return r.node(parent)
		case r.col >= 0 && r.col == parent && r.isDash(r.pos):
			return r.sequence(parent)
		}
		r.dst = append(r.dst, "null"...)
		return true
	case '"', '\'':
		if i = r.quoted(i, true); i < 0 {
			return false
		}
	case '[', '{':
		if i = r.flow(i); i < 0 {
			return false
		}
	case '|', '>':
		return r.block(i, parent)
	default:
		span := r.plainLine(i)
		if span.end < 0 || span.colon || r.isDash(i) {
			return false
		}
		return r.plain(i, span, parent)
	}
	if i = r.lineEnd(i); i < 0 || !r.nextLine(i) {
		return false
	}
	return r.col <= parent
}

func (r *fastReader) sequence(col int) bool {
	if r.depth++; r.depth > r.max.MaxDepth {
		return false
	}
	r.dst = append(r.dst, '[')
	for {
		dash := r.pos
		i := skipSpaces(r.src, dash+1)
		if c := r.src[i]; c == '\n' || c == '#' {
			if c == '#' {
				if i = comment(r.src, i); i < 0 {
					return false
				}
			}
			if !r.nextLine(i) {
				return false
			}
			if r.col <= col {
				r.dst = append(r.dst, "null"...)
			} else if !r.node(col) {
				return false
			}
		} else {
			r.pos, r.col = i, col+i-dash
			if !r.node(col) {
				return false
			}
		}
		if r.col != col || !r.isDash(r.pos) {
			break
		}
		r.dst = append(r.dst, ',')
	}
	r.dst = append(r.dst, ']')
	r.depth--
	return r.col <= col
}

// longestKey is the maximum length of a key in its line, in bytes; the library allows 1024 characters.
const longestKey = 1000

func (r *fastReader) mapping(col int) bool {
	if r.depth++; r.depth > r.max.MaxDepth {
		return false
	}
	r.dst = append(r.dst, '{')
	o := object{first: len(r.c.members)}
	for {
		i := r.key(r.pos, &o)
		if i < 0 {
			return false
		}
		this := len(r.c.members) - 1
		if !r.value(i, col) {
			return false
		}
		r.c.members[this].end = len(r.dst)
		if r.col != col || r.isDash(r.pos) {
			break
		}
		r.dst = append(r.dst, ',')
	}
	r.dst = append(r.c.endObject(o, r.dst, r.duplicate), '}')
	r.depth--
	return r.col <= col
}

func (r *fastReader) duplicate(int, []byte) { r.repeated = true }

// key reads a key of a block mapping and its colon.
func (r *fastReader) key(i int, o *object) int {
	start := i
	m := member{key: len(r.dst) + 1}
	if c := r.src[i]; c == '"' || c == '\'' {
		if i = r.quoted(i, false); i < 0 {
			return -1
		}
		m.escaped = bytes.IndexByte(r.dst[m.key:], '\\') >= 0
	} else {
		span := r.plainLine(i)
		if span.end < 0 || !span.colon {
			return -1
		}
		i = span.end
		if !r.plainKey(r.src[start:i], span.escape) {
			return -1
		}
		m.escaped = span.escape
	}
	if r.src[i] != ':' || r.src[i+1] != ' ' && r.src[i+1] != '\n' || i-start > longestKey {
		return -1
	}
	m.keyEnd = len(r.dst) - 1
	if !r.c.addMember(o, r.dst, m, r.max.MaxMembers) {
		return -1
	}
	r.dst = append(r.dst, ':')
	return i + 1
}
