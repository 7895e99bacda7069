package schemagen

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Mutation is a document that is not valid against a schema any more.
type Mutation struct {
	// Kind is Unknown, WrongType, Missing or WrongValue, and Place where it was made.
	Kind, Place string
	Document    any
}

// What is wrong in a mutation.
const (
	Unknown    = "unknown member"
	WrongType  = "wrong type"
	Missing    = "missing member"
	WrongValue = "wrong value"
)

// UnknownMember is the name of the member that mutations add.
const UnknownMember = "fbc_nosuch"

// Mutate changes a valid document in every place where the schema says what is wrong: at each object that allows no
// other members, each required member, each value with a type, and each with an enumeration.
func Mutate(schema Object, document any) []Mutation {
	m := &mutator{root: schema, document: document}
	m.visit(schema, document, nil)
	return m.found
}

type mutator struct {
	root     Object
	document any
	found    []Mutation
}

// add makes a mutation: the value at a path is replaced by another one, or removed.
func (m *mutator) add(kind string, path []any, change func(any) (value any, remove bool)) {
	place := ""
	for _, step := range path {
		place += "/" + fmt.Sprint(step)
	}
	m.found = append(m.found, Mutation{kind, place, changed(m.document, path, change)})
}

// changed returns a copy of a value with another one at a path.
func changed(v any, path []any, change func(any) (any, bool)) any {
	if len(path) == 0 {
		out, _ := change(v)
		return out
	}
	switch v := v.(type) {
	case map[string]any:
		out, name := maps.Clone(v), path[0].(string)
		if len(path) == 1 {
			if value, remove := change(v[name]); remove {
				delete(out, name)
			} else {
				out[name] = value
			}
			return out
		}
		out[name] = changed(v[name], path[1:], change)
		return out
	case []any:
		out, i := slices.Clone(v), path[0].(int)
		out[i] = changed(v[i], path[1:], change)
		return out
	}
	return v
}

func to(value any) func(any) (any, bool) { return func(any) (any, bool) { return value, false } }

// visit makes the mutations of a value that a schema describes.
func (m *mutator) visit(s Object, v any, path []any) {
	if ref, ok := s["$ref"].(string); ok {
		m.visit(m.root["$defs"].(Object)[strings.TrimPrefix(ref, defsPrefix)].(Object), v, path)
	}
	if choices, ok := s["anyOf"].([]any); ok && v != nil && choices[0].(Object)["required"] == nil {
		m.visit(choices[0].(Object), v, path)
	}
	if wrong := unlike(s["type"]); wrong != nil {
		m.add(WrongType, path, to(wrong))
	}
	if s["enum"] != nil || s["const"] != nil {
		wrong := any("nosuch")
		if s["type"] == "integer" {
			wrong = json.Number("77")
		}
		m.add(WrongValue, path, to(wrong))
	}
	switch v := v.(type) {
	case map[string]any:
		m.members(s, v, path)
	case []any:
		items, ok := s["items"].(Object)
		for i := range v {
			if ok && i == 0 {
				m.visit(items, v[i], append(slices.Clone(path), i))
			}
		}
	}
}

func (m *mutator) members(s Object, v map[string]any, path []any) {
	if s["additionalProperties"] == false || s["propertyNames"] != nil {
		m.add(Unknown, path, func(any) (any, bool) {
			out := maps.Clone(v)
			out[UnknownMember] = "text"
			return out, false
		})
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		m.add(Missing, append(slices.Clone(path), name), func(any) (any, bool) { return nil, true })
	}
	properties, _ := s["properties"].(Object)
	others, _ := s["additionalProperties"].(Object)
	for _, name := range slices.Sorted(maps.Keys(v)) {
		of, ok := properties[name].(Object)
		if !ok {
			of = others
		}
		if of != nil {
			m.visit(of, v[name], append(slices.Clone(path), name))
		}
	}
}

// unlike returns a value of a type that is not allowed; nil if any is.
func unlike(kind any) any {
	is := func(name string) bool {
		list, _ := kind.([]any)
		return kind == name || slices.Contains(list, any(name))
	}
	switch {
	case kind == nil:
		return nil
	case is("object"):
		return "text"
	case is("string"):
		return json.Number("1.5")
	}
	return map[string]any{}
}
