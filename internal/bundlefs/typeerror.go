package bundlefs

import (
	stdjson "encoding/json"
	"errors"
	"reflect"
	"strconv"

	"github.com/go-json-experiment/json"
)

// TypeProblem says of an error of decoding JSON what is wrong, and the path of the value as far as it is known. The
// text of the error itself is for programmers: it has types of Go.
func TypeProblem(err error) (path []any, text string) {
	var std *stdjson.UnmarshalTypeError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &std):
		return FieldPath(std.Field), wrongType(std.Type, std.Value)
	case errors.As(err, &semantic) && semantic.GoType != nil:
		for name := range semantic.JSONPointer.Tokens() {
			if i, err := strconv.Atoi(name); err == nil {
				path = append(path, i)
			} else {
				path = append(path, name)
			}
		}
		return path, wrongType(semantic.GoType, semantic.JSONKind.String())
	}
	return nil, err.Error()
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
