package bundle

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions of this file look into canonical JSON: compact, valid, keys sorted. Nothing is decoded that is not asked
// for, since most of a bundle is schemas that no caller reads.

// members calls f with the key, as it is written between its quotes, and the value of each member of an object, until
// f returns false. Other values have no members.
func members(object []byte, f func(key, value []byte) bool) {
	if len(object) == 0 || object[0] != '{' {
		return
	}
	for i := 1; i < len(object) && object[i] == '"'; i++ {
		keyEnd := stringEnd(object, i)
		end := valueEnd(object, keyEnd+1)
		if !f(object[i+1:keyEnd-1], object[keyEnd+1:end]) {
			return
		}
		i = end // at the comma
	}
}

// elements calls f with each element of an array, until f returns false. Other values have no elements.
func elements(array []byte, f func(value []byte) bool) {
	if len(array) < 2 || array[0] != '[' || array[1] == ']' {
		return
	}
	for i := 1; i < len(array); i++ {
		end := valueEnd(array, i)
		if !f(array[i:end]) {
			return
		}
		i = end
	}
}

// member returns the value of a member, nil if there is none.
func member(object []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		members(object, func(key, value []byte) bool {
			if string(key) != name {
				return string(key) < name // keys are sorted
			}
			found = value
			return false
		})
		object = found
	}
	return object
}

// text returns the string that a value is; false if it is not a string.
func text(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	b, err := jsontext.AppendUnquote(nil, value)
	return string(b), err == nil
}

// textAt returns the string at a path, empty if there is none.
func textAt(object []byte, path ...string) string {
	s, _ := text(member(object, path...))
	return s
}

// valueEnd returns the index behind the value that starts at b[i].
func valueEnd(b []byte, i int) int {
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		for depth := 0; i < len(b); i++ {
			switch b[i] {
			case '"':
				i = stringEnd(b, i) - 1
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		return len(b)
	}
	for i < len(b) && b[i] != ',' && b[i] != '}' && b[i] != ']' {
		i++
	}
	return i
}

// stringEnd returns the index behind the string that starts at b[i]. It looks for the quote with a memory search, since
// what is passed over are descriptions: that made reading a bundle about a tenth faster.
func stringEnd(b []byte, i int) int {
	for j := i + 1; ; {
		quote := bytes.IndexByte(b[j:], '"')
		if quote < 0 {
			return len(b)
		}
		j += quote
		escapes := 0
		for b[j-1-escapes] == '\\' {
			escapes++
		}
		if j++; escapes%2 == 0 {
			return j
		}
	}
}
