// Package shape says which kinds of values a document may have at which places, and finds those of another kind: the
// numbers where text is meant, the texts where lists are meant. Readers of files that people write share it, so that a
// mistake has the same words in all of them: the field, what is there, what is expected, and how to write it.
//
//	s := shape.Object(shape.Fields{"name": shape.Text, "tags": shape.List(shape.Text)})
//	s.Check([]byte(`{"name":1.10}`), func(f shape.Fault) {
//		fmt.Println(f) // name is a number, expected a string (write it in quotes: "1.10")
//	})
//
// Values are compact JSON as package canon writes it. As encoding/json does, null counts as absent.
package shape

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// Shape is the form of a value. Shapes may refer to each other, but not to themselves.
type Shape struct {
	kind   Kind
	elem   *Shape // of a list or a map
	fields Fields
	names  []string // of fields, in order
	closed bool     // other fields are faults
}

// Fields are the shapes of an object's fields by name.
type Fields = map[string]*Shape

// The shapes without parts.
var (
	Text   = &Shape{kind: String}
	Whole  = &Shape{kind: WholeNumber}
	Switch = &Shape{kind: Boolean}
	Binary = &Shape{kind: Base64}
	Any    = &Shape{}
)

// List returns the shape of a list of items.
func List(item *Shape) *Shape { return &Shape{kind: Array, elem: item} }

// Map returns the shape of an object with any names and values of one shape.
func Map(value *Shape) *Shape { return &Shape{kind: Mapping, elem: value} }

// Object returns the shape of an object. Other fields are faults.
func Object(fields Fields) *Shape {
	s := Open(fields)
	s.closed = true
	return s
}

// Open returns the shape of an object that may have other fields, and whose names may be written in any case: what
// encoding/json decodes to a struct.
func Open(fields Fields) *Shape {
	return &Shape{kind: Mapping, fields: fields, names: slices.Sorted(maps.Keys(fields))}
}

// Texts returns fields that are text.
func Texts(names ...string) Fields {
	fields := Fields{}
	for _, name := range names {
		fields[name] = Text
	}
	return fields
}

// Conforms reports whether the next value of a scanner has the shape, and consumes it. False means that it may have it,
// and that encoding/json must decide.
func (s *Shape) Conforms(in *jsonscan.Scanner) bool {
	if in.Null() {
		return !in.Failed()
	}
	switch s.kind {
	case String:
		in.RawString()
	case Boolean:
		if c := in.Peek(); c != 't' && c != 'f' {
			return false
		}
		in.Value()
	case WholeNumber:
		if !isWhole(in.Value()) {
			return false
		}
	case Base64:
		return false
	case Array:
		in.Array(func() {
			if !s.elem.Conforms(in) {
				in.Fail()
			}
		})
	case Mapping:
		in.Object(func(key []byte) {
			field := s.fields[string(key)]
			switch {
			case field == nil && s.elem != nil:
				field = s.elem
			case field == nil && (s.closed || jsonscan.FoldsTo(key, s.names...)):
				in.Fail()
				return
			case field == nil:
				field = Any
			}
			if !field.Conforms(in) {
				in.Fail()
			}
		})
	default:
		in.Value()
	}
	return !in.Failed()
}

func isWhole(number []byte) bool {
	for i, c := range number {
		if (c < '0' || c > '9') && (c != '-' || i > 0) {
			return false
		}
	}
	return len(number) > 0 && len(number) < 19
}

// Check calls wrong for each value that has another kind than the shape, and for each unknown field of an [Object], in
// the order of the document.
func (s *Shape) Check(doc []byte, wrong func(Fault)) { s.check(doc, nil, wrong) }

func (s *Shape) check(value []byte, path []any, wrong func(Fault)) {
	got := Of(value)
	if got == Null || s.kind == "" {
		return
	}
	text, isText := "", false
	if got == String {
		text, isText = jsonscan.Text(value)
	}
	switch s.kind {
	case WholeNumber:
		if isWhole(value) {
			return
		}
	case Base64:
		if _, err := base64.StdEncoding.DecodeString(text); isText && err == nil {
			return
		}
	case got:
		switch got {
		case Array:
			i := 0
			jsonscan.Elements(value, func(item []byte) bool {
				s.elem.check(item, append(slices.Clip(path), i), wrong)
				i++
				return true
			})
		case Mapping:
			s.members(value, path, wrong)
		}
		return
	}
	if !isText {
		text = string(value)
	}
	f := Fault{Path: path, Got: got, Want: s.kind, Written: text}
	if s.elem != nil {
		f.item = s.elem.kind
	}
	wrong(f)
}

func (s *Shape) members(object []byte, path []any, wrong func(Fault)) {
	jsonscan.Members(object, func(key, value []byte) bool {
		var name string
		if json.Unmarshal([]byte(`"`+string(key)+`"`), &name) != nil {
			return true
		}
		field := s.fields[name]
		if field == nil && !s.closed {
			if i := slices.IndexFunc(s.names, func(n string) bool { return strings.EqualFold(n, name) }); i >= 0 {
				field = s.fields[s.names[i]]
			}
		}
		at := append(slices.Clip(path), name)
		switch {
		case field != nil:
			field.check(value, at, wrong)
		case s.elem != nil:
			s.elem.check(value, at, wrong)
		case s.closed:
			wrong(Fault{Path: at, Got: Of(value), Known: s.names})
		}
		return true
	})
}
