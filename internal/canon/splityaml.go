package canon

import (
	"bytes"
	"fmt"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/fault"
)

var separator = []byte("\n---")

func (s *Splitter) nextYAML() (Doc, error) {
	for {
		first, line, offset := s.first, s.line, s.offset
		data, begin, end, err := s.readYAML()
		if err != nil {
			return Doc{Line: line}, err
		}
		if first {
			if rest, marked := bytes.CutPrefix(data, []byte("\xef\xbb\xbf")); marked {
				data, begin = rest, begin+len(data)-len(rest)
			}
		}
		if lead := leading(data); lead < len(data) {
			line += bytes.Count(data[:lead], []byte{'\n'})
			return Doc{Line: line, Data: data[lead:], Start: offset + int64(begin), End: offset + int64(end)}, nil
		}
	}
}

// readYAML returns the text up to the next separator and consumes both. A separator at the very start is part of the
// text. begin and end delimit, in the consumed bytes, the text after the leading separator and before the next one.
func (s *Splitter) readYAML() (text []byte, begin, end int, err error) {
	for len(s.window()) < 4 && s.fill() {
	}
	if len(s.window()) == 0 {
		return nil, 0, 0, s.end()
	}
	from := 0
	if bytes.HasPrefix(s.window(), separator[1:]) {
		if begin, err = s.separatorEnd(0); err != nil {
			return nil, 0, 0, err
		}
		from = max(begin-1, 0) // its line feed may begin the next separator
	}
	for {
		w := s.window()
		if i := bytes.Index(w[from:], separator); i >= 0 {
			at := from + i + 1
			behind, err := s.separatorEnd(at)
			if err != nil {
				return nil, 0, 0, err
			}
			data := s.window()[:at:at]
			if len(data) > s.limits.MaxDocument {
				return nil, 0, 0, s.tooLarge()
			}
			s.consume(behind)
			return unixLines(data), begin, at, nil
		}
		from = max(from, len(w)-len(separator)+1)
		if len(w) > s.limits.MaxDocument {
			return nil, 0, 0, s.tooLarge()
		}
		if !s.fill() {
			break
		}
	}
	if s.readErr != nil {
		return nil, 0, 0, s.readErr
	}
	data := s.window()
	end = len(data)
	s.consume(end)
	data = unixLines(data)
	if data[len(data)-1] != '\n' {
		data = append(data, '\n')
	}
	return data, begin, end, nil
}

// separatorEnd returns the end of the separator line at offset at of the window; the line may have only a comment after
// the separator.
func (s *Splitter) separatorEnd(at int) (int, error) {
	from := at
	for {
		if i := bytes.IndexByte(s.window()[from:], '\n'); i >= 0 {
			from += i + 1
			break
		}
		from = len(s.window())
		if from > s.limits.MaxDocument {
			return 0, s.tooLarge()
		}
		if !s.fill() {
			break
		}
	}
	rest := bytes.TrimSpace(s.window()[at+len(separator)-1 : from])
	if len(rest) > 0 && rest[0] != '#' {
		return 0, &SyntaxError{
			Format: "yaml",
			Line:   lineAt(s.window(), at),
			Msg: fmt.Sprintf("invalid Yaml document separator: %s",
				fault.Clip(string(bytes.ToValidUTF8(rest, []byte("?"))), maxShown)),
		}
	}
	return from, nil
}

// unixLines replaces CR LF by LF in place.
func unixLines(data []byte) []byte {
	i := bytes.IndexByte(data, '\r')
	if i < 0 {
		return data
	}
	out := data[:i]
	for ; i < len(data); i++ {
		if data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n' {
			continue
		}
		out = append(out, data[i])
	}
	return out
}

// leading returns the length of what precedes the content of a YAML document: blank lines, comments and one separator.
// It is len(data) if there is no content.
func leading(data []byte) int {
	i := 0
	for i < len(data) {
		line := data[i : i+bytes.IndexByte(data[i:], '\n')+1]
		text := bytes.TrimLeft(line, " ")
		if i == 0 && bytes.HasPrefix(data, separator[1:]) {
			text = bytes.TrimLeft(line[3:], " ")
			if line[3] == '#' {
				break // a comment needs a space before it
			}
		}
		if len(text) == 0 || text[0] != '\n' && (text[0] != '#' || !isYAMLText(line)) {
			break
		}
		i += len(line)
	}
	if i < len(data) && (data[i] == '%' || data[i] == '.') {
		return 0 // these have another meaning without the separator
	}
	return i
}

// isYAMLText reports whether data are UTF-8 and have only characters that YAML allows.
func isYAMLText(data []byte) bool {
	for i := 0; i < len(data); {
		if c := data[i]; c < utf8.RuneSelf {
			if c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f {
				return false
			}
			i++
			continue
		}
		r, size := utf8.DecodeRune(data[i:])
		switch {
		case r == utf8.RuneError && size == 1,
			r < 0xa0 && r != 0x85,
			r == 0xfeff || r == 0xfffe || r == 0xffff:
			return false
		}
		i += size
	}
	return true
}
