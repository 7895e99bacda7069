package catalogql

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// raw is a value of a blob as canonical JSON. Lists and objects stay so until they are written.
type raw []byte

// memberOf returns the value of an object's member for a field: that of the key with the field's very name, or else of
// the first key that has this name in GraphQL; nil if there is none.
func memberOf(source any, name string) raw {
	object, ok := source.(raw)
	if !ok {
		return nil
	}
	var found raw
	jsonscan.Members(object, func(rawKey, value []byte) bool {
		switch {
		case string(rawKey) == name:
			found = value
			return false
		case found == nil && fieldName(keyText(rawKey)) == name:
			found = value
		}
		return true
	})
	return found
}

// leaf returns a value for a scalar: a string, a number as float64, a boolean or nil. Lists and objects are their JSON
// text as Go writes it.
func leaf(value raw) any {
	if len(value) == 0 {
		return nil
	}
	switch value[0] {
	case '{', '[':
		return string(goText(value))
	case '"':
		if text, ok := jsonscan.Text(value); ok {
			return text
		}
		return nil
	}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return nil
	}
	return v
}

// goText returns canonical JSON as encoding/json writes what it has decoded: numbers are float64, and <, > and & are
// escaped. It does so without decoding, which would take ten times the memory.
func goText(value raw) []byte {
	text := make([]byte, 0, len(value)+len(value)/8)
	for i := 0; i < len(value); {
		end := i + 1
		switch c := value[i]; {
		case c == '"':
			if end = jsonscan.StringEnd(value, i); end < 0 {
				return nil
			}
			s, _ := jsonscan.Text(value[i:end])
			quoted, _ := json.Marshal(s) // a string can be marshalled
			text = append(text, quoted...)
		case c == '-' || isDigit(c):
			for end < len(value) && strings.IndexByte("+-.eE0123456789", value[end]) >= 0 {
				end++
			}
			text = append(text, number(value[i:end])...)
		default:
			text = append(text, c)
		}
		i = end
	}
	return text
}

// number returns a number as Go writes it; one that is no float64 stays as it is.
func number(text []byte) []byte {
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return text
	}
	out, err := json.Marshal(f)
	if err != nil {
		return text
	}
	return out
}
