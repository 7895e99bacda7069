package canon

import (
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// jsonReader reads one JSON document and writes it in canonical form in the same pass. Methods that read take the start
// offset and return the offset after what they read, or -1 after setting err.
type jsonReader struct {
	c     *Converter
	src   []byte
	dst   []byte
	depth int
	max   Limits
	check bool   // write nothing
	at    int    // offset of the failure
	msg   string // reason, if encoding/json would not report it
	limit *LimitError
}

// AppendJSON appends the canonical JSON of the one JSON value in doc to dst. Numbers keep their text. Strings are
// escaped as encoding/json does without HTML escaping. The last of equal keys counts, with a warning. Invalid UTF-8 and
// unpaired surrogate escapes are refused.
//
// The error is a [*SyntaxError] (wrapping [io.ErrUnexpectedEOF] if doc ends too early) or a [*LimitError]; dst is then
// returned unchanged.
func (c *Converter) AppendJSON(dst, doc []byte) ([]byte, error) {
	l := c.Limits.withDefaults()
	if len(doc) > l.MaxDocument {
		return dst, &LimitError{What: "document size", Limit: int64(l.MaxDocument)}
	}
	c.members = c.members[:0]
	c.warned = 0
	r := jsonReader{c: c, src: doc, dst: dst, max: l}
	if !r.document() {
		return dst, r.error()
	}
	return r.dst, nil
}

// checkJSON returns the error of AppendJSON.
func (c *Converter) checkJSON(doc []byte) error {
	r := jsonReader{c: c, src: doc, max: c.Limits.withDefaults(), check: true}
	if !r.document() {
		return r.error()
	}
	return nil
}

func (r *jsonReader) document() bool {
	i := r.value(jsonscan.SkipSpace(r.src, 0))
	if i >= 0 {
		if i = jsonscan.SkipSpace(r.src, i); i < len(r.src) {
			i = r.fail(i, "")
		}
	}
	return i >= 0
}

// write appends to the output.
func (r *jsonReader) write(text []byte) {
	if !r.check {
		r.dst = append(r.dst, text...)
	}
}

func (r *jsonReader) writeRune(u rune) {
	if !r.check {
		r.dst = appendRune(r.dst, u)
	}
}

func (r *jsonReader) fail(at int, msg string) int {
	r.at, r.msg = at, msg
	return -1
}

// error describes the failure with the message of encoding/json, which reads the document again for it.
func (r *jsonReader) error() error {
	if r.limit != nil {
		r.limit.Line = lineAt(r.src, r.at)
		return r.limit
	}
	e := &SyntaxError{Format: "json", Msg: r.msg}
	if r.msg == "" {
		var raw json.RawMessage
		var syntax *json.SyntaxError
		err := json.Unmarshal(r.src, &raw)
		switch {
		case errors.As(err, &syntax) && int(syntax.Offset) >= len(
			r.src) && syntax.Error() == "unexpected end of JSON input":
			e.Err, e.Msg = io.ErrUnexpectedEOF, io.ErrUnexpectedEOF.Error()
			r.at = len(r.src)
		case errors.As(err, &syntax):
			e.Err, e.Msg = err, syntax.Error()
			r.at = int(syntax.Offset) - 1
		default:
			e.Msg = "invalid value"
		}
	}
	e.Line, e.Column = lineAt(r.src, r.at), columnAt(r.src, r.at)
	return e
}

func (r *jsonReader) value(i int) int {
	if i >= len(r.src) {
		return r.fail(i, "")
	}
	switch c := r.src[i]; {
	case c == '"':
		i, _ = r.str(i)
		return i
	case c == '{':
		return r.object(i)
	case c == '[':
		return r.array(i)
	case c == '-' || '0' <= c && c <= '9':
		end := numberEnd(r.src, i)
		if end < 0 {
			return r.fail(i, "")
		}
		r.write(r.src[i:end])
		return end
	case c == 't':
		return r.readWord(i, "true")
	case c == 'f':
		return r.readWord(i, "false")
	case c == 'n':
		return r.readWord(i, "null")
	}
	return r.fail(i, "")
}

func (r *jsonReader) readWord(i int, w string) int {
	if len(r.src)-i < len(w) || string(r.src[i:i+len(w)]) != w {
		return r.fail(i, "")
	}
	r.write(r.src[i : i+len(w)])
	return i + len(w)
}

// numberEnd returns the offset after the JSON number that starts at i, or -1 if there is none.
func numberEnd(s []byte, i int) int {
	digits := func() bool {
		start := i
		for i < len(s) && '0' <= s[i] && s[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(s) && s[i] == '-' {
		i++
	}
	if i < len(s) && s[i] == '0' {
		i++
	} else if !digits() {
		return -1
	}
	if i < len(s) && s[i] == '.' {
		i++
		if !digits() {
			return -1
		}
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		i++
		if i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		if !digits() {
			return -1
		}
	}
	return i
}

func (r *jsonReader) enter(i int) bool {
	if r.depth++; r.depth > r.max.MaxDepth {
		r.limit = &LimitError{What: "depth", Limit: int64(r.max.MaxDepth)}
		r.fail(i, "")
		return false
	}
	return true
}

func (r *jsonReader) array(i int) int {
	if !r.enter(i) {
		return -1
	}
	r.dst = append(r.dst, '[')
	i = jsonscan.SkipSpace(r.src, i+1)
	if i < len(r.src) && r.src[i] == ']' {
		r.dst = append(r.dst, ']')
		r.depth--
		return i + 1
	}
	for {
		if i = r.value(i); i < 0 {
			return -1
		}
		if i = jsonscan.SkipSpace(r.src, i); i >= len(r.src) {
			return r.fail(i, "")
		}
		r.dst = append(r.dst, r.src[i])
		switch r.src[i] {
		case ',':
			i = jsonscan.SkipSpace(r.src, i+1)
		case ']':
			r.depth--
			return i + 1
		default:
			return r.fail(i, "")
		}
	}
}

func (r *jsonReader) object(i int) int {
	if !r.enter(i) {
		return -1
	}
	r.dst = append(r.dst, '{')
	i = jsonscan.SkipSpace(r.src, i+1)
	if i < len(r.src) && r.src[i] == '}' {
		r.dst = append(r.dst, '}')
		r.depth--
		return i + 1
	}
	o := object{first: len(r.c.members)}
	for {
		if i >= len(r.src) || r.src[i] != '"' {
			return r.fail(i, "")
		}
		m := member{key: len(r.dst) + 1, offset: i}
		if i, m.escaped = r.str(i); i < 0 {
			return -1
		}
		m.keyEnd = len(r.dst) - 1
		if !r.check && !r.c.addMember(&o, r.dst, m, r.max.MaxMembers) {
			r.limit = &LimitError{What: "members", Limit: int64(r.max.MaxMembers)}
			return r.fail(m.offset, "")
		}
		this := len(r.c.members) - 1
		if i = jsonscan.SkipSpace(r.src, i); i >= len(r.src) || r.src[i] != ':' {
			return r.fail(i, "")
		}
		r.dst = append(r.dst, ':')
		if i = r.value(jsonscan.SkipSpace(r.src, i+1)); i < 0 {
			return -1
		}
		if !r.check {
			r.c.members[this].end = len(r.dst)
		}
		if i = jsonscan.SkipSpace(r.src, i); i >= len(r.src) {
			return r.fail(i, "")
		}
		switch r.src[i] {
		case ',':
			r.dst = append(r.dst, ',')
			i = jsonscan.SkipSpace(r.src, i+1)
		case '}':
			if !r.check {
				r.dst = append(r.c.endObject(o, r.dst, r.duplicate), '}')
			}
			r.depth--
			return i + 1
		default:
			return r.fail(i, "")
		}
	}
}

func (r *jsonReader) duplicate(offset int, key []byte) {
	r.c.warn(func() int { return lineAt(r.src, offset) }, duplicateKey(string(decodeString(key))))
}

// str reads the string at i. It copies spans of the source up to the closing quote or the next character that is
// written differently: escapes that encoding/json does not use, and the two Unicode line separators. It reports whether
// the written string has escapes.
func (r *jsonReader) str(i int) (int, bool) {
	src, start, escaped := r.src, i, false
	for i++; ; {
		i = plainPrefix(src, i)
		if i >= len(src) {
			return r.fail(i, ""), false
		}
		switch c := src[i]; {
		case c == '"':
			r.write(src[start : i+1])
			return i + 1, escaped
		case c == '\\':
			escaped = true
			if i+1 < len(src) {
				switch src[i+1] {
				case '"', '\\', 'n', 't', 'r', 'b', 'f': // as they are
					i += 2
					continue
				}
			}
			u, size := unescape(src[i:])
			if size == 0 {
				if len(src)-i >= 6 && src[i+1] == 'u' && hex4(src[i+2:]) >= 0 {
					return r.fail(i, "invalid Unicode escape: half of a surrogate pair"), false
				}
				return r.fail(i, ""), false
			}
			r.write(src[start:i])
			r.writeRune(u)
			i += size
			start = i
		case c < 0x20:
			return r.fail(i, ""), false
		default:
			u, size := utf8.DecodeRune(src[i:])
			switch {
			case u == utf8.RuneError && size == 1:
				return r.fail(i, "text is not valid UTF-8"), false
			case u == '\u2028' || u == '\u2029':
				escaped = true
				r.write(src[start:i])
				r.writeRune(u)
				start = i + size
			}
			i += size
		}
	}
}
