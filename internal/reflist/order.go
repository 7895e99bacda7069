package reflist

import (
	"bytes"
	"encoding/json"

	"github.com/opencontainers/image-spec/specs-go"
)

var versioned = specs.Versioned{SchemaVersion: 2}

// MarshalInOrder writes the members of an object in the order that they have in old, which is an object with the same
// names.
func MarshalInOrder(old []byte, fields map[string]json.RawMessage) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(old))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	out := []byte{'{'}
	written := map[string]bool{}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			return nil, err
		}
		text, _ := name.(string)
		if written[text] {
			continue
		}
		written[text] = true
		key, err := json.Marshal(text)
		if err != nil {
			return nil, err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), fields[text]...)
	}
	return append(out, '}'), nil
}
