package manifests

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// squeeze takes canonical JSON through a type: what comes out is what the type would print, as canonical JSON. It is
// false for text that the type may refuse or print in another way than it is written, such as fractions; the type
// itself is for these. The rules are those by which encoding/json decodes a struct and prints it again:
//
//	a field that the type does not have    is left out
//	a field that is null                   counts as absent
//	an empty value of an optional field    is left out, unless the field is a pointer
//	an absent field that is always printed appears with its zero value, in the order of the names
//
// Maps and lists are printed as they are, with their items by the same rules.
func (l *layout) squeeze(text []byte) ([]byte, bool) {
	s := &squeezer{text: text, out: make([]byte, 0, len(text)+len(text)/8)}
	s.value(l)
	return s.out, !s.failed && s.at == len(text)
}

type squeezer struct {
	text   []byte
	at     int
	out    []byte
	failed bool
}

// copyTo copies the text up to an offset.
func (s *squeezer) copyTo(end int) {
	if end < 0 || end > len(s.text) {
		s.failed = true
		return
	}
	s.out = append(s.out, s.text[s.at:end]...)
	s.at = end
}

// value prints a value, not null, and reports whether it is empty.
func (s *squeezer) value(l *layout) (empty bool) {
	if s.at >= len(s.text) {
		s.failed = true
	}
	if s.failed {
		return false
	}
	c := s.text[s.at]
	switch {
	case l.form == formStruct && c == '{':
		s.object(l)
	case l.form == formMap && c == '{':
		return s.keyed(l)
	case l.form == formList && c == '[':
		return s.list(l)
	case l.form == formString && c == '"':
		end := jsonscan.StringEnd(s.text, s.at)
		empty = end == s.at+2
		s.copyTo(end)
	case l.form == formBool && c == 't', l.form == formSchemaOrBool && c == 't':
		s.copyTo(s.at + len("true"))
	case l.form == formBool && c == 'f', l.form == formSchemaOrBool && c == 'f':
		s.copyTo(s.at + len("false"))
		return true
	case l.form == formSchemaOrBool && c == '{', l.form == formSchemaOrList && c == '{':
		s.object(l.item)
	case l.form == formInt, l.form == formFloat:
		return s.number(l)
	case l.form == formJSON:
		s.whatever()
	default:
		s.failed = true
	}
	return empty
}

// object prints a struct. The fields of the text and those that are always printed are both in the order of their names,
// and are merged.
func (s *squeezer) object(l *layout) {
	s.out = append(s.out, '{')
	start := len(s.out)
	comma := func() { // before a member
		if len(s.out) > start {
			s.out = append(s.out, ',')
		}
	}
	missing := l.always // of these, those that are not printed yet
	for s.at++; !s.failed && s.text[s.at] != '}'; s.comma() {
		quoted := s.key()
		if s.failed {
			return
		}
		field := l.fields[string(quoted[1:len(quoted)-1])]
		if field == nil || bytes.HasPrefix(s.text[s.at:], []byte("null")) {
			s.skip()
			continue
		}
		for len(missing) > 0 && missing[0].name < field.name {
			comma()
			s.addMissing(missing[0])
			missing = missing[1:]
		}
		if len(missing) > 0 && missing[0] == field {
			missing = missing[1:]
		}
		before := len(s.out)
		comma()
		s.out = append(append(s.out, quoted...), ':')
		if empty := s.value(field.layout); empty && field.optional && !field.pointer {
			s.out = s.out[:before]
		}
	}
	for _, field := range missing {
		comma()
		s.addMissing(field)
	}
	s.out = append(s.out, '}')
	s.at++
}

// addMissing prints a field that the text does not have.
func (s *squeezer) addMissing(f *layoutField) {
	s.out = append(append(append(append(s.out, '"'), f.name...), `":`...), f.zero...)
}

// key returns the next key with its quotes, and stands at its value.
func (s *squeezer) key() []byte {
	end := jsonscan.StringEnd(s.text, s.at)
	if end < 0 || end+1 >= len(s.text) {
		s.failed = true
		return nil
	}
	quoted := s.text[s.at:end]
	s.at = end + 1
	return quoted
}

// comma passes the comma after a member or item.
func (s *squeezer) comma() {
	if s.at < len(s.text) && s.text[s.at] == ',' {
		s.at++
	}
	s.failed = s.failed || s.at >= len(s.text)
}

func (s *squeezer) skip() {
	if s.at = jsonscan.ValueEnd(s.text, s.at); s.at < 0 {
		s.failed = true
	}
}

// keyed prints a map.
func (s *squeezer) keyed(l *layout) (empty bool) {
	s.copyTo(s.at + 1)
	empty = !s.failed && s.text[s.at] == '}'
	for !s.failed && s.text[s.at] != '}' {
		s.out = append(append(s.out, s.key()...), ':')
		s.value(l.item)
		s.separator()
	}
	if !s.failed {
		s.copyTo(s.at + 1)
	}
	return empty
}

// list prints a list.
func (s *squeezer) list(l *layout) (empty bool) {
	s.copyTo(s.at + 1)
	empty = !s.failed && s.text[s.at] == ']'
	for !s.failed && s.text[s.at] != ']' {
		s.value(l.item)
		s.separator()
	}
	if !s.failed {
		s.copyTo(s.at + 1)
	}
	return empty
}

// separator prints the comma between items.
func (s *squeezer) separator() {
	if s.at >= len(s.text) {
		s.failed = true
	} else if !s.failed && s.text[s.at] == ',' {
		s.copyTo(s.at + 1)
	}
}

// number prints a number as the type does.
func (s *squeezer) number(l *layout) (empty bool) {
	end := s.at
	for end < len(s.text) && bytes.IndexByte([]byte("+-.eE0123456789"), s.text[end]) >= 0 {
		end++
	}
	digits := string(s.text[s.at:end])
	if l.form == formInt {
		n, err := strconv.ParseInt(digits, 10, l.bits)
		if err != nil || digits == "-0" {
			s.failed = true
			return false
		}
		s.copyTo(end)
		return n == 0
	}
	f, err := strconv.ParseFloat(digits, 64)
	printed, printErr := json.Marshal(f)
	if err != nil || printErr != nil || digits == "-0" {
		s.failed = true
		return false
	}
	s.out, s.at = append(s.out, printed...), end
	return f == 0
}

// whatever prints any value as it is, unless it has numbers that are printed in another way.
func (s *squeezer) whatever() {
	end := jsonscan.ValueEnd(s.text, s.at)
	if end < 0 {
		s.failed = true
		return
	}
	for i := s.at; i < end; i++ {
		switch c := s.text[i]; {
		case c == '"':
			i = jsonscan.StringEnd(s.text, i) - 1
		case c == '-' || c >= '0' && c <= '9':
			start := i
			for i+1 < end && bytes.IndexByte([]byte("+-.eE0123456789"), s.text[i+1]) >= 0 {
				i++
			}
			if n, err := strconv.ParseInt(string(s.text[start:i+1]), 10, 64); err != nil || c == '-' && n == 0 {
				s.failed = true
				return
			}
		}
	}
	s.copyTo(end)
}
