package template

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/operator-bindery/bindery/internal/shape"
)

// node is a value in the template's document: its canonical JSON and its path from the root.
type node struct {
	path []any // keys (string) and indices (int)
	raw  json.RawMessage
}

// member is a field of an object.
type member struct {
	key string
	node
}

func (n node) at(step any, raw json.RawMessage) node {
	return node{path: append(n.path[:len(n.path):len(n.path)], step), raw: raw}
}

func (n node) kind() shape.Kind {
	if len(n.raw) == 0 {
		return shape.Null
	}
	return shape.Of(n.raw)
}

// isZero reports whether a field with that value counts as absent: null, an empty string, false, an empty list or
// object.
func (n node) isZero() bool {
	switch string(n.raw) {
	case "", "null", `""`, "false", "[]", "{}":
		return true
	}
	return false
}

// str returns the value of a string.
func (n node) str() string {
	var s string
	_ = json.Unmarshal(n.raw, &s) // another type is reported where the kind is checked
	return s
}

// members returns the fields of an object sorted by key; none for another value. The document is canonical JSON, so
// that no key is repeated.
func (n node) members() []member {
	var out []member
	n.each('{', func(dec *jsontext.Decoder) bool {
		key, err := dec.ReadToken()
		if err != nil {
			return false
		}
		name := key.String()
		value, ok := n.value(dec)
		if ok {
			out = append(out, member{name, n.at(name, value)})
		}
		return ok
	})
	return out
}

// items returns those of an array; none for another value, or if there are more than most.
func (n node) items(most int) (out []node, ok bool) {
	ok = true
	n.each('[', func(dec *jsontext.Decoder) bool {
		value, valid := n.value(dec)
		if ok = len(out) < most; !ok || !valid {
			return false
		}
		out = append(out, n.at(len(out), value))
		return true
	})
	if !ok {
		return nil, false
	}
	return out, true
}

func (n node) each(open jsontext.Kind, next func(*jsontext.Decoder) bool) {
	dec := jsontext.NewDecoder(bytes.NewBuffer(n.raw))
	if tok, err := dec.ReadToken(); err != nil || tok.Kind() != open {
		return
	}
	for dec.PeekKind() != '}' && dec.PeekKind() != ']' && dec.PeekKind() != 0 {
		if !next(dec) {
			return
		}
	}
}

// value reads the next value of n without copying it.
func (n node) value(dec *jsontext.Decoder) (json.RawMessage, bool) {
	value, err := dec.ReadValue()
	if err != nil {
		return nil, false
	}
	end := int(dec.InputOffset())
	return n.raw[end-len(value) : end : end], true
}

// lookup returns the members whose keys equal name, ignoring case, as encoding/json does.
func lookup(members []member, name string) []member {
	var out []member
	for _, m := range members {
		if strings.EqualFold(m.key, name) {
			out = append(out, m)
		}
	}
	return out
}

// lookupPath returns the path of the first member with that name; nil if there is none.
func lookupPath(members []member, name string) []any {
	if found := lookup(members, name); len(found) > 0 {
		return found[0].path
	}
	return nil
}
