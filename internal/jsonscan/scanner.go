package jsonscan

import (
	"bytes"
	"encoding/json"
)

// Scanner reads compact, valid JSON as package canon writes it. On anything else it fails: its user then falls back to
// encoding/json, whose result or error counts. After a failure all methods return zero values.
type Scanner struct {
	b      []byte
	i      int
	failed bool
}

// NewScanner returns a scanner at the start of a text.
func NewScanner(b []byte) Scanner { return Scanner{b: b} }

// Fail marks the text as unreadable for the scanner.
func (s *Scanner) Fail() { s.failed = true }

// Failed reports whether the scanner has failed.
func (s *Scanner) Failed() bool { return s.failed }

// Done reports whether the whole text was read without a failure.
func (s *Scanner) Done() bool { return !s.failed && s.i == len(s.b) }

// Offset returns how much of the text was read.
func (s *Scanner) Offset() int { return s.i }

// Peek returns the next byte, 0 at the end.
func (s *Scanner) Peek() byte {
	if s.failed || s.i >= len(s.b) {
		return 0
	}
	return s.b[s.i]
}

func (s *Scanner) expect(c byte) {
	if s.Peek() != c {
		s.failed = true
		return
	}
	s.i++
}

// String reads a string.
func (s *Scanner) String() string {
	raw := s.RawString()
	if raw == nil {
		return ""
	}
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var v string
	if json.Unmarshal(raw, &v) != nil {
		s.failed = true
	}
	return v
}

// RawString reads a string and returns its text including the quotes.
func (s *Scanner) RawString() []byte {
	if s.Peek() != '"' {
		s.failed = true
		return nil
	}
	end := StringEnd(s.b, s.i)
	if end < 0 {
		s.failed = true
		return nil
	}
	raw := s.b[s.i:end]
	s.i = end
	return raw
}

// Value reads any value and returns its bytes.
func (s *Scanner) Value() []byte {
	if s.failed {
		return nil
	}
	end := ValueEnd(s.b, s.i)
	if end < 0 {
		s.failed = true
		return nil
	}
	raw := s.b[s.i:end]
	s.i = end
	return raw
}

// Null reads a null if it is next, and reports whether it was.
func (s *Scanner) Null() bool {
	if s.Peek() == 'n' {
		s.Value()
		return true
	}
	return false
}

// Object calls member for each member of an object. member must read the value.
func (s *Scanner) Object(member func(key []byte)) {
	s.expect('{')
	if s.Peek() == '}' {
		s.i++
		return
	}
	for !s.failed {
		raw := s.RawString()
		s.expect(':')
		if s.failed {
			return
		}
		member(raw[1 : len(raw)-1])
		if s.Peek() == ',' {
			s.i++
			continue
		}
		s.expect('}')
		return
	}
}

// Array calls element for each element of an array. element must read the value.
func (s *Scanner) Array(element func()) {
	s.expect('[')
	if s.Peek() == ']' {
		s.i++
		return
	}
	for !s.failed {
		element()
		if s.Peek() == ',' {
			s.i++
			continue
		}
		s.expect(']')
		return
	}
}

// At calls visit at each value at a path of keys, with "[]" for the elements of an array. visit must read the value.
func (s *Scanner) At(visit func(), path ...string) {
	switch {
	case len(path) == 0:
		visit()
	case path[0] == "[]":
		s.Array(func() { s.At(visit, path[1:]...) })
	default:
		s.Object(func(key []byte) {
			if string(key) == path[0] {
				s.At(visit, path[1:]...)
			} else {
				s.Value()
			}
		})
	}
}
