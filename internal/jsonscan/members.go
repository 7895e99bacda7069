package jsonscan

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// The functions in this file read canonical JSON: valid and compact, with sorted keys.

// Members calls f for each member of an object, until f returns false, with the value and with the key as written
// between its quotes. Other values have no members.
func Members(object []byte, f func(key, value []byte) bool) {
	if len(object) == 0 || object[0] != '{' {
		return
	}
	for i := 1; i < len(object) && object[i] == '"'; i++ {
		keyEnd := StringEnd(object, i)
		if keyEnd < 0 {
			return
		}
		end := ValueEnd(object, keyEnd+1)
		if end < 0 || !f(object[i+1:keyEnd-1], object[keyEnd+1:end]) {
			return
		}
		i = end // at the comma
	}
}

// Elements calls f for each element of an array, until f returns false. Other values have no elements.
func Elements(array []byte, f func(value []byte) bool) {
	if len(array) < 2 || array[0] != '[' || array[1] == ']' {
		return
	}
	for i := 1; i < len(array); i++ {
		end := ValueEnd(array, i)
		if end < 0 || !f(array[i:end]) {
			return
		}
		i = end
	}
}

// Member returns the value of the member at a path of keys; nil if there is none.
func Member(object []byte, path ...string) []byte {
	for _, name := range path {
		var found []byte
		Members(object, func(key, value []byte) bool {
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

// Text returns the string of a value; false if it is not a string.
func Text(value []byte) (string, bool) {
	if len(value) < 2 || value[0] != '"' {
		return "", false
	}
	if inner := value[1 : len(value)-1]; bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), true
	}
	b, err := jsontext.AppendUnquote(nil, value)
	return string(b), err == nil
}

// TextAt returns the string at a path; empty if there is none.
func TextAt(object []byte, path ...string) string {
	s, _ := Text(Member(object, path...))
	return s
}
