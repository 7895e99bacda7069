package declcfg

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// jsonType is the form of the JSON of a Go type, made from the same "json" tags that encoding/json and internal/shape
// read.
type jsonType struct {
	kind   valueKind
	elem   *jsonType   // of a list, or of an object that may be absent
	fields []jsonField // of an object
	names  []string    // of the fields, sorted
	hasRaw bool        // there is JSON as it was read in the value
	empty  reflect.Value
}

type jsonField struct {
	name      string
	quoted    []byte // the name as a string of JSON
	index     int    // in the struct, or notInStruct
	omitEmpty bool
	value     *jsonType // nil if notInStruct
}

// notInStruct is the index of the field "schema".
const notInStruct = -1

type valueKind int

const (
	textValue valueKind = iota
	rawValue            // any JSON, kept as it is
	base64Value
	listValue
	objectValue
	pointerValue // to an object; nil if it is absent
)

// newJSONType returns the form of a type. It panics if the type is not made of what blobs are made of.
func newJSONType(t reflect.Type) *jsonType {
	switch {
	case t == reflect.TypeFor[json.RawMessage]():
		return &jsonType{kind: rawValue, hasRaw: true}
	case t == reflect.TypeFor[[]byte]():
		return &jsonType{kind: base64Value}
	case t.Kind() == reflect.String:
		return &jsonType{kind: textValue}
	case t.Kind() == reflect.Slice:
		elem := newJSONType(t.Elem())
		return &jsonType{kind: listValue, elem: elem, hasRaw: elem.hasRaw}
	case t.Kind() == reflect.Pointer:
		elem := newJSONType(t.Elem())
		return &jsonType{kind: pointerValue, elem: elem, hasRaw: elem.hasRaw}
	case t.Kind() != reflect.Struct:
		panic("no form in JSON: " + t.String())
	}
	object := &jsonType{kind: objectValue}
	for i := range t.NumField() {
		f := t.Field(i)
		name, option, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || !f.IsExported() {
			continue
		}
		value := newJSONType(f.Type)
		omitEmpty := option == "omitempty"
		if value.kind == listValue && !omitEmpty {
			value.empty = reflect.MakeSlice(f.Type, 0, 0)
		}
		object.fields = append(object.fields, jsonField{name, appendString(nil, name), i, omitEmpty, value})
		object.names = append(object.names, name)
		object.hasRaw = object.hasRaw || value.hasRaw
	}
	slices.Sort(object.names)
	return object
}

// field returns the field of a name, nil if there is none.
func (t *jsonType) field(name []byte) *jsonField {
	for i := range t.fields {
		if t.fields[i].name == string(name) {
			return &t.fields[i]
		}
	}
	return nil
}

// dropEmptyLists makes lists nil that are not written if they are empty.
func (t *jsonType) dropEmptyLists(object reflect.Value) {
	for _, f := range t.fields {
		if f.omitEmpty && f.value.kind == listValue && object.Field(f.index).Len() == 0 {
			object.Field(f.index).SetZero()
		}
	}
}

// detach copies the JSON that a value shares with the text that it was read from.
func (t *jsonType) detach(v reflect.Value) {
	if !t.hasRaw {
		return
	}
	switch t.kind {
	case rawValue:
		v.SetBytes(bytes.Clone(v.Bytes()))
	case listValue:
		for i := range v.Len() {
			t.elem.detach(v.Index(i))
		}
	case pointerValue:
		if !v.IsNil() {
			t.elem.detach(v.Elem())
		}
	case objectValue:
		for _, f := range t.fields {
			if f.index != notInStruct {
				f.value.detach(v.Field(f.index))
			}
		}
	}
}

// object reads an object into a struct. It accepts what writers usually write: names in their exact case, values of the
// right types. On anything else it fails. Unknown fields are appended to unknown, unless that is nil.
func (s *scanner) object(t *jsonType, into reflect.Value, unknown *[]Field) {
	s.Object(func(key []byte) {
		switch f := t.field(key); {
		case f == nil && jsonscan.FoldsTo(key, t.names...):
			s.Fail()
		case f == nil:
			s.odd = true
			value := s.Value()
			if unknown != nil {
				*unknown = append(*unknown, Field{Name: string(key), Value: value})
			}
		case f.index == notInStruct:
			s.Value()
		default:
			s.value(f.value, into.Field(f.index))
		}
	})
}

// value reads a value, null as an absent one.
func (s *scanner) value(t *jsonType, into reflect.Value) {
	if t.kind == rawValue {
		into.SetBytes(s.Value())
		return
	}
	into.SetZero()
	if s.Null() {
		return
	}
	switch t.kind {
	case textValue:
		into.SetString(s.String())
	case base64Value:
		into.SetBytes(s.base64())
	case listValue:
		if t.empty.IsValid() {
			into.Set(t.empty)
		}
		s.Array(func() {
			n := into.Len()
			into.Grow(1)
			into.SetLen(n + 1)
			s.value(t.elem, into.Index(n))
		})
	case pointerValue:
		into.Set(reflect.New(into.Type().Elem()))
		s.value(t.elem, into.Elem())
	case objectValue:
		s.object(t, into, nil)
	}
}

func (s *scanner) base64() []byte {
	raw := s.RawString()
	if raw == nil {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(string(raw[1 : len(raw)-1]))
	if err != nil {
		s.Fail() // an escape, or an error that encoding/json will report
	}
	return data
}

// object writes a struct as an object of a schema, if that is not empty, with its unknown fields.
func (w *objectWriter) object(t *jsonType, v reflect.Value, schema string, unknown []Field) {
	w.open('{')
	for i := range t.fields {
		f := &t.fields[i]
		if f.index == notInStruct {
			w.quotedKey(f.quoted)
			w.buf = appendString(w.buf, schema)
			continue
		}
		if field := v.Field(f.index); !f.omitEmpty || !isEmpty(field) {
			w.quotedKey(f.quoted)
			w.typed(f.value, field)
		}
	}
	for _, f := range unknown {
		w.key(f.Name)
		w.value(f.Value)
	}
	w.close('}')
}

// isEmpty reports whether encoding/json omits a value.
func isEmpty(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer {
		return v.IsNil()
	}
	return v.Len() == 0 // a text or a list
}

func (w *objectWriter) typed(t *jsonType, v reflect.Value) {
	switch t.kind {
	case textValue:
		w.buf = appendString(w.buf, v.String())
	case rawValue:
		w.value(v.Bytes())
	case base64Value:
		w.buf = appendBase64(w.buf, v.Bytes())
	case listValue:
		if v.IsNil() {
			w.value(nil)
			return
		}
		w.open('[')
		for i := range v.Len() {
			w.element()
			w.typed(t.elem, v.Index(i))
		}
		w.close(']')
	case pointerValue:
		w.typed(t.elem, v.Elem())
	case objectValue:
		w.object(t, v, "", nil)
	}
}
