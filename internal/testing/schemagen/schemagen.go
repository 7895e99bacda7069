// Package schemagen makes JSON Schemas (draft 2020-12) of Go types that encoding/json or a YAML library encodes. Names
// and optional members come from the tags of fields, descriptions from the comments in the source, and the values of an
// enumeration from the constants of its type. It is for tests, which compare the result with committed files.
//
// github.com/invopop/jsonschema makes 10 of the 56 schemas the same, descriptions apart: it has no null where a nil list
// or pointer is encoded, one definition for two types of the same name, and neither values nor the sentence about one
// field from the source. What corrects that, and the tests' samples and mutations, are most of this package.
package schemagen

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Object is a JSON object. encoding/json sorts its members.
type Object = map[string]any

// Draft is the address of the draft that the schemas follow.
const Draft = "https://json-schema.org/draft/2020-12/schema"

// Generator makes schemas. Comments and constants are read from the source of the module.
type Generator struct {
	// Module is the path of the module, and Dir its directory: comments of types outside it are not read.
	Module, Dir string
	// Enums are types of text that have no values but their constants.
	Enums []reflect.Type
	// Schemas are those of types that encode themselves.
	Schemas map[reflect.Type]Object

	packages map[string]*source
}

// Root is what a schema describes.
type Root struct {
	ID, Title, Description string
	Type                   reflect.Type
	// Tag is the key of the tags: "json" or "yaml".
	Tag string
	// Read means that the program reads it: $schema is a member of the object then, and null is not a value.
	// Upstream means that the program reads it without $schema.
	Read, Upstream bool
}

// Schema returns the schema of a root. A type of a struct is below $defs, so that each is written once.
func (g *Generator) Schema(r Root) (Object, error) {
	w := &writer{g: g, root: r, defs: Object{}, names: map[string]reflect.Type{}}
	top := w.value(r.Type, place{})
	if w.err != nil {
		return nil, fmt.Errorf("%s: %w", r.Title, w.err)
	}
	out := Object{"$schema": Draft, "$id": r.ID, "title": r.Title, "description": r.Description}
	if ref, ok := top["$ref"].(string); ok {
		name := strings.TrimPrefix(ref, defsPrefix)
		if !w.refers(name) {
			top = w.defs[name].(Object)
			delete(w.defs, name)
		}
	}
	for k, v := range top {
		if _, given := out[k]; !given {
			out[k] = v
		}
	}
	if r.Read {
		if members, ok := out["properties"].(Object); ok {
			members["$schema"] = Object{"type": "string", "description": "The schema of the file, for editors."}
		}
	}
	if len(w.defs) > 0 {
		out["$defs"] = w.defs
	}
	return out, nil
}

const defsPrefix = "#/$defs/"

// writer makes one schema.
type writer struct {
	g     *Generator
	root  Root
	defs  Object
	names map[string]reflect.Type // of the definitions
	err   error
}

// refers reports whether a definition refers to another one or itself by name.
func (w *writer) refers(name string) bool {
	text, err := json.Marshal(w.defs)
	return err == nil && strings.Contains(string(text), `"`+defsPrefix+name+`"`)
}

func (w *writer) fail(format string, args ...any) Object {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
	return Object{}
}

var (
	jsonEncoder = reflect.TypeFor[json.Marshaler]()
	textEncoder = reflect.TypeFor[encoding.TextMarshaler]()
)

// place is where the comments of a type without a name are: a package, and a path such as "Type.Field" in it.
type place struct{ pkg, path string }

// value returns the schema of a value at a place.
func (w *writer) value(t reflect.Type, at place) Object {
	if own, ok := w.g.Schemas[t]; ok {
		return own
	}
	switch t {
	case reflect.TypeFor[time.Time]():
		return Object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[json.RawMessage]():
		return Object{}
	}
	if t.Kind() == reflect.Pointer {
		return w.value(t.Elem(), at)
	}
	if t.Implements(jsonEncoder) || reflect.PointerTo(t).Implements(jsonEncoder) {
		return w.fail("%s encodes itself, and no schema is given", t)
	}
	if t.Implements(textEncoder) || reflect.PointerTo(t).Implements(textEncoder) {
		return Object{"type": "string"}
	}
	switch t.Kind() {
	case reflect.String:
		return w.text(t)
	case reflect.Bool:
		return Object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return Object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return Object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return Object{"type": "number"}
	case reflect.Interface:
		return Object{}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return Object{"type": "string", "contentEncoding": "base64"}
		}
		return Object{"type": "array", "items": w.value(t.Elem(), at)}
	case reflect.Map:
		return Object{"type": "object", "additionalProperties": w.value(t.Elem(), at)}
	case reflect.Struct:
		return w.object(t, at)
	}
	return w.fail("%s has no form in JSON", t)
}

func (w *writer) text(t reflect.Type) Object {
	if !slices.Contains(w.g.Enums, t) {
		return Object{"type": "string"}
	}
	values := w.g.Values(t)
	if len(values) == 0 {
		return w.fail("%s has no constants", t)
	}
	return Object{"type": "string", "enum": values}
}

// Values returns the constants of a type of text, in the order of the source.
func (g *Generator) Values(t reflect.Type) []string { return g.source(t.PkgPath()).constants[t.Name()] }

// object returns the schema of a struct: a reference to its definition, if it has a name.
func (w *writer) object(t reflect.Type, at place) Object {
	if t.Name() == "" {
		return w.members(t, at)
	}
	name := strings.ToLower(t.Name()[:1]) + t.Name()[1:]
	for n := 2; w.names[name] != nil && w.names[name] != t; n++ {
		name = fmt.Sprintf("%s%d", strings.TrimRight(name, "0123456789"), n)
	}
	if w.names[name] == nil {
		w.names[name] = t
		o := w.members(t, place{t.PkgPath(), t.Name()})
		if text := w.g.typeComment(t); text != "" {
			o["description"] = text
		}
		w.defs[name] = o
	}
	return Object{"$ref": defsPrefix + name}
}

func (w *writer) members(t reflect.Type, at place) Object {
	properties, required := Object{}, []string{}
	w.fields(t, at, properties, &required)
	o := Object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		o["required"] = required
	}
	return o
}

// fields adds the fields of a struct, and those of structs that it embeds, unless it has fields of their names.
func (w *writer) fields(t reflect.Type, at place, into Object, required *[]string) {
	var embedded []reflect.Type
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get(w.root.Tag), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case f.Anonymous && inner.Kind() == reflect.Struct && (tag == "" || options == "inline"):
			embedded = append(embedded, inner)
			continue
		case tag == "-", !f.IsExported():
			continue
		case tag == "":
			tag = f.Name
			if w.root.Tag == "yaml" {
				tag = strings.ToLower(f.Name)
			}
		}
		if into[tag] != nil {
			continue
		}
		optional := strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero")
		below := place{at.pkg, at.path + "." + f.Name}
		o := nullable(w.value(f.Type, below), f.Type, optional || w.root.Read || w.root.Upstream)
		o = enumerated(o, f.Tag.Get("enum"))
		if text := w.g.fieldComment(below, f.Name, tag); text != "" {
			o = with(o, "description", text)
		}
		into[tag] = o
		if !optional {
			*required = append(*required, tag)
		}
	}
	for _, e := range embedded {
		w.fields(e, place{e.PkgPath(), e.Name()}, into, required)
	}
}

// nullable adds null to what a nil value is encoded as, unless it is left out then.
func nullable(o Object, t reflect.Type, leftOut bool) Object {
	switch t.Kind() {
	case reflect.Slice, reflect.Map, reflect.Pointer:
	default:
		return o
	}
	if leftOut {
		return o
	}
	switch kind := o["type"].(type) {
	case string:
		return with(o, "type", []string{kind, "null"})
	case nil:
		if o["$ref"] != nil {
			return Object{"anyOf": []any{o, Object{"type": "null"}}}
		}
	}
	return o
}

// enumerated restricts a value to those of a tag: a|b, or one alone.
func enumerated(o Object, tag string) Object {
	switch values := strings.Split(tag, "|"); {
	case tag == "":
		return o
	case o["type"] == "integer":
		return with(o, "const", json.RawMessage(tag))
	case len(values) == 1:
		return with(o, "const", tag)
	default:
		return with(o, "enum", values)
	}
}

// with returns a copy with another member.
func with(o Object, name string, value any) Object {
	out := Object{name: value}
	for k, v := range o {
		if k != name {
			out[k] = v
		}
	}
	return out
}
