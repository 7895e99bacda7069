package shape

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
)

// For returns the shape of what encoding/json decodes to a type. Objects may have other fields.
func For[T any]() *Shape { return of(reflect.TypeFor[T](), Open) }

// Strict is like [For], for documents in which other fields are mistakes.
func Strict[T any]() *Shape { return of(reflect.TypeFor[T](), Object) }

// FieldsOf returns the fields of the shape that [For] returns for a struct.
func FieldsOf[T any]() Fields {
	fields := Fields{}
	addFields(fields, reflect.TypeFor[T](), Open)
	return fields
}

var (
	decodesJSON = reflect.TypeFor[json.Unmarshaler]()
	decodesText = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func of(t reflect.Type, object func(Fields) *Shape) *Shape {
	switch p := reflect.PointerTo(t); {
	case p.Implements(decodesJSON):
		return Any
	case p.Implements(decodesText):
		return Text
	}
	switch t.Kind() {
	case reflect.Pointer:
		return of(t.Elem(), object)
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return Binary
		}
		return List(of(t.Elem(), object))
	case reflect.Map:
		return Map(of(t.Elem(), object))
	case reflect.Struct:
		fields := Fields{}
		addFields(fields, t, object)
		return object(fields)
	case reflect.Interface:
		return Any
	}
	return &Shape{kind: ofType(t)}
}

func addFields(fields Fields, t reflect.Type, object func(Fields) *Shape) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-", !f.IsExported() && !f.Anonymous:
		case f.Anonymous && name == "":
			addFields(fields, f.Type, object)
		case name == "":
			fields[f.Name] = of(f.Type, object)
		default:
			fields[name] = of(f.Type, object)
		}
	}
}
