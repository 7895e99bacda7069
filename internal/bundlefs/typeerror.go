package bundlefs

import (
	"bytes"
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// TypeProblem says of an error of decoding a value of JSON what is wrong, and the path in the value as far as it is
// known. The text of the error itself is for programmers: it has types of Go.
func TypeProblem(value []byte, err error) (path []any, text string) {
	var std *stdjson.UnmarshalTypeError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &std):
		if path = pathAt(value, std.Offset); namesOf(path) != std.Field {
			path = FieldPath(std.Field) // the offset is in a part of the value
		}
		return path, wrongType(std.Type, std.Value)
	case errors.As(err, &semantic) && semantic.GoType != nil:
		path = pointerPath(semantic.JSONPointer)
		return path, wrongType(semantic.GoType, semantic.JSONKind.String())
	}
	return nil, err.Error()
}

// TypeError returns an error of decoding a value of JSON with the text of [TypeProblem].
func TypeError(value []byte, err error) error {
	path, text := TypeProblem(value, err)
	if len(path) > 0 {
		text = FieldName(path) + ": " + text
	}
	return errors.New(text)
}

// pathAt returns the path of the value that ends at an offset, or that is an object or a list beginning there.
func pathAt(value []byte, offset int64) []any {
	d := jsontext.NewDecoder(bytes.NewReader(value))
	for d.InputOffset() < offset {
		if _, err := d.ReadToken(); err != nil {
			return nil
		}
	}
	return pointerPath(d.StackPointer())
}

func pointerPath(p jsontext.Pointer) (path []any) {
	for name := range p.Tokens() {
		if i, err := strconv.Atoi(name); err == nil {
			path = append(path, i)
		} else {
			path = append(path, name)
		}
	}
	return path
}

// namesOf returns the keys of a path, separated by dots, as the library names a field.
func namesOf(path []any) string {
	var names []string
	for _, step := range path {
		if name, ok := step.(string); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

// wrongType says what type a value must have and which it has. Both libraries name some of the kinds in their own ways.
func wrongType(want reflect.Type, got string) string {
	for want.Kind() == reflect.Pointer {
		want = want.Elem()
	}
	text := "must be text, not "
	switch want.Kind() {
	case reflect.Struct, reflect.Map:
		text = "must be an object, not "
	case reflect.Slice, reflect.Array:
		text = "must be a list, not "
	case reflect.Bool:
		text = "must be true or false, not "
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8,
		reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		text = "must be a number, not "
	}
	switch got {
	case "string":
		return text + "text"
	case "array", "[":
		return text + "a list"
	case "object", "{":
		return text + "an object"
	case "bool", "true", "false":
		got = "a boolean"
	default: // std names the number too
		got = "a number"
	}
	if want.Kind() == reflect.String {
		got += ": put it in quotes"
	}
	return text + got
}
