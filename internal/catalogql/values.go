package catalogql

import (
	"encoding/json"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// raw is a value of a blob as canonical JSON. Lists and objects stay so until they are written.
type raw []byte

// member returns the value of an object's member for a field: that of the key with the field's very name, or else of the
// first key that has this name in GraphQL; nil if there is none.
func member(source any, name string) raw {
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
// text, with sorted keys and numbers as Go writes them.
func leaf(value raw) any {
	if len(value) == 0 {
		return nil
	}
	if value[0] == '"' {
		if text, ok := jsonscan.Text(value); ok {
			return text
		}
	}
	var v any
	if json.Unmarshal(value, &v) != nil {
		return nil
	}
	switch v.(type) {
	case map[string]any, []any:
		text, err := json.Marshal(v)
		if err != nil {
			return nil
		}
		return string(text)
	}
	return v
}
