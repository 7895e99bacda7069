// Package indented writes JSON with indentation, and bounds what indentation makes of a document. A list in ninety
// lists makes every one of its items a line of hundreds of blanks: a megabyte would become two hundred, and YAML
// repeats the indentation even within texts of many lines.
//
//	Most, Budget    how long an output may become
//	Append          compact JSON, indented
//	Encode          a value as indented JSON
//	Write           the same, in parts, for values with long lists
package indented

import (
	"fmt"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// An output has at most Factor times the bytes of its compact JSON, and Floor bytes more. That is also what aliases may
// make of YAML, see [canon.Limits].
const (
	Factor = 10
	Floor  = 1 << 20
)

// ErrTooLong is the error of an output that would be longer than it may be. It is of the class [fault.ErrLimit].
var ErrTooLong = fmt.Errorf("%w: with indentation", fault.ErrLimit)

// Error returns the error of an output that would have more than most bytes.
func Error(most int) error {
	return fmt.Errorf("%w it would have more than %d bytes", ErrTooLong, most)
}

// Most returns how many bytes n bytes of compact JSON may become.
func Most(n int) int { return (&Budget{}).Most(n) }

// Budget bounds an output of several documents as if they were one: small documents do not have a Floor each. The zero
// value is ready. It is not safe for concurrent use.
type Budget struct{ compact, written int64 }

// Most returns how many bytes the next document may have whose compact JSON has n bytes.
func (b *Budget) Most(n int) int { return int(Factor*(b.compact+int64(n)) + Floor - b.written) }

// Add adds a document: the length of its compact JSON, and that of its text. The error is [ErrTooLong].
func (b *Budget) Add(compact, written int) error {
	if most := b.Most(compact); written > most {
		return Error(most)
	}
	b.compact += int64(compact)
	b.written += int64(written)
	return nil
}

// Append appends the compact JSON value src with each level indented by unit, as a value at a depth: the text of
// [json.Indent]. White space outside of strings is dropped. src must be valid JSON. With more than most bytes it
// returns dst and false.
func Append(dst, src []byte, unit string, depth, most int) ([]byte, bool) {
	start := len(dst)
	for i := 0; i < len(src); i++ {
		if len(dst)-start > most {
			return dst[:start], false
		}
		switch c := src[i]; c {
		case '"':
			end := jsonscan.StringEnd(src, i)
			if end < 0 {
				end = len(src)
			}
			dst = append(dst, src[i:end]...)
			i = end - 1
		case '{', '[':
			dst = append(dst, c)
			j := jsonscan.SkipSpace(src, i+1)
			if j < len(src) && (src[j] == '}' || src[j] == ']') {
				dst = append(dst, src[j])
				i = j
				continue
			}
			depth++
			dst = Newline(dst, unit, depth)
		case '}', ']':
			depth--
			dst = Newline(dst, unit, depth)
			dst = append(dst, c)
		case ',':
			dst = append(dst, c)
			dst = Newline(dst, unit, depth)
		case ':':
			dst = append(dst, ':', ' ')
		case ' ', '\t', '\n', '\r':
		default:
			dst = append(dst, c)
		}
	}
	if len(dst)-start > most {
		return dst[:start], false
	}
	return dst, true
}

// Newline appends a line end and the indentation of a depth.
func Newline(dst []byte, unit string, depth int) []byte {
	dst = append(dst, '\n')
	for range depth {
		dst = append(dst, unit...)
	}
	return dst
}

// Encode returns a value as indented JSON without HTML escapes, and a line end. The error is [ErrTooLong], or one of
// [json.Marshal].
func Encode(v any, unit string) ([]byte, error) { return EncodeWithin(v, unit, &Budget{}) }

// EncodeWithin is like [Encode], for one of several values that have a budget together.
func EncodeWithin(v any, unit string, b *Budget) ([]byte, error) {
	compact, err := canon.Encode(v)
	if err != nil {
		return nil, err
	}
	most := b.Most(len(compact))
	text, ok := Append(nil, compact, unit, 0, most)
	if !ok {
		return nil, Error(most)
	}
	return append(text, '\n'), b.Add(len(compact), len(text))
}
