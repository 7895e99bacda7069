package canon

import (
	"bytes"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// Strings reads the string values of top-level keys without converting the document. names consist of ASCII letters.
// The value of a missing key is "". It returns false if it cannot guarantee the result of a conversion: a value is not
// a plain string, a key is repeated or differs only in case, or the YAML could have lines that look like keys and are
// not. The values are meaningless for a document that cannot be converted or lacks the first key.
func (d Doc) Strings(names []string, values []string) bool {
	clear(values)
	q := stringsReader{names: names, values: values, found: 0}
	if d.JSON {
		return q.json(d.Data)
	}
	return q.yaml(d.Data)
}

type stringsReader struct {
	names, values []string
	found         uint // one bit for each name
}

// key returns the index of a name; -1 if the key is not one of them. ok is false for a key that encoding/json would
// also match, by ignoring case, and for a repeated key.
func (q *stringsReader) key(key []byte) (int, bool) {
	for n, name := range q.names {
		if string(key) == name {
			if q.found&(1<<n) != 0 {
				return n, false
			}
			q.found |= 1 << n
			return n, true
		}
		if bytes.EqualFold(key, []byte(name)) {
			return n, false
		}
	}
	return -1, true
}

// yaml reads the lines without indentation. Every key of a block mapping without indentation is on such a line, but a
// line in a quoted scalar or flow collection may look like one.
func (q *stringsReader) yaml(data []byte) bool {
	if hasForeignBreaks(data) {
		return false
	}
	sure := true // no quoted scalar or flow collection has begun
	for i, first := 0, true; i < len(data); first = false {
		end := bytes.IndexByte(data[i:], '\n')
		if end < 0 {
			return false
		}
		line := data[i : i+end]
		i += end + 1
		if n := keyLength(line); n > 0 {
			at, ok := q.key(line[:n])
			if !ok {
				return false
			}
			if at >= 0 {
				value := bytes.TrimRight(line[n+1:], " ")
				value = bytes.TrimLeft(value, " ")
				// A valid document has the first key; if only one line can have it, that line does.
				if !sure && at > 0 || !isPlainString(value) || i < len(data) && !endsPlain(data[i]) {
					return false
				}
				q.values[at] = string(value)
				continue
			}
		} else if first || !isBelowKey(line) {
			return false
		}
		sure = sure && bytes.IndexByte(line, '"') < 0 && bytes.IndexByte(line, '\'') < 0 &&
			bytes.IndexByte(line, '{') < 0 && bytes.IndexByte(line, '[') < 0
	}
	return true
}

// hasForeignBreaks reports whether a text has YAML 1.1 line breaks other than line feeds.
func hasForeignBreaks(data []byte) bool {
	return bytes.IndexByte(data, '\r') >= 0 || bytes.Contains(data, []byte("\u0085")) ||
		bytes.Contains(data, []byte("\u2028")) || bytes.Contains(data, []byte("\u2029"))
}

// keyLength returns the length of the key at the start of a line; 0 if it is not a key of ASCII letters, digits and a
// few signs.
func keyLength(line []byte) int {
	for i, c := range line {
		switch {
		case 'a' <= c|0x20 && c|0x20 <= 'z':
		case i > 0 && ('0' <= c && c <= '9' || c == '.' || c == '-' || c == '_' || c == '/'):
		case i > 0 && c == ':' && (i+1 == len(line) || line[i+1] == ' '):
			return i
		default:
			return 0
		}
	}
	return 0
}

// isBelowKey reports whether a line belongs to the value of the preceding key, or is blank or a comment.
func isBelowKey(line []byte) bool {
	if len(line) == 0 {
		return true
	}
	switch line[0] {
	case ' ', '\t', '#':
		return true
	case '-':
		return len(line) == 1 || line[1] == ' '
	}
	return false
}

// endsPlain reports whether a line starting with that byte, in a block mapping without indentation, cannot continue the
// plain scalar of the line before.
func endsPlain(c byte) bool {
	return c == '-' || c == '"' || c == '\'' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// isPlainString reports whether a plain scalar with that text is a string with the same text.
func isPlainString(text []byte) bool {
	if len(text) == 0 || len(text) > longestNumber || !plainStarts[text[0]] || text[0] == '-' {
		return false
	}
	for _, c := range text {
		switch {
		case '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z', c == '.', c == '-', c == '_', c == '/', c == '+',
			c == '@':
		case c == ':' && text[len(text)-1] != ':':
		default:
			return false
		}
	}
	if scalarHints[text[0]] {
		_, special := resolve(text)
		return !special && !looksNumeric(text)
	}
	return true
}

// json reads the members of the top-level object.
func (q *stringsReader) json(data []byte) bool {
	i := jsonscan.SkipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return false
	}
	if i = jsonscan.SkipSpace(data, i+1); i < len(data) && data[i] == '}' {
		return i+1 == len(data)
	}
	for {
		key, end := plainJSONString(data, i)
		if end < 0 {
			return false
		}
		at, ok := q.key(key)
		if !ok {
			return false
		}
		if i = jsonscan.SkipSpace(data, end); i >= len(data) || data[i] != ':' {
			return false
		}
		i = jsonscan.SkipSpace(data, i+1)
		if at >= 0 {
			value, end := plainJSONString(data, i)
			if end < 0 {
				return false
			}
			q.values[at], i = string(value), end
		} else if i = jsonscan.ValueEnd(data, i); i < 0 {
			return false
		}
		if i = jsonscan.SkipSpace(data, i); i >= len(data) {
			return false
		}
		switch data[i] {
		case '}':
			return i+1 == len(data)
		case ',':
			i = jsonscan.SkipSpace(data, i+1)
		default:
			return false
		}
	}
}

// plainJSONString returns the string at i if it is printable ASCII without escapes, and the offset after it.
func plainJSONString(data []byte, i int) ([]byte, int) {
	if i >= len(data) || data[i] != '"' {
		return nil, -1
	}
	for end := i + 1; end < len(data); end++ {
		switch c := data[end]; {
		case c == '"':
			return data[i+1 : end], end + 1
		case c < ' ' || c == '\\' || c >= 0x7f:
			return nil, -1
		}
	}
	return nil, -1
}

// Text returns the document of a span from [Splitter.Next], given the bytes of the stream from Doc.Start to Doc.End. It
// modifies span. It does not work for documents whose Data begin with a separator: the span lacks it.
func Text(span []byte, json bool) Doc {
	if json {
		return Doc{Data: span, JSON: true}
	}
	span = unixLines(span)
	if n := len(span); n == 0 || span[n-1] != '\n' {
		span = append(span, '\n')
	}
	return Doc{Data: span[leading(span):]}
}
