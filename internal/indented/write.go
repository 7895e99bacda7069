package indented

import (
	"bytes"
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"strconv"
	"strings"
)

// inParts is from how many items on a list is written item by item.
const inParts = 64

// Write writes a value as indented JSON and a line end: what [json.Indent] makes of what encode returns for it. Long
// lists that are fields of a struct are encoded item by item, as the text of all items takes many times the memory of
// the items. No string is divided between two calls of w.Write. The error is [ErrTooLong], or one of encode or w; something
// may have been written then.
func Write(w io.Writer, v any, unit string, encode func(any) ([]byte, error)) error {
	var b Budget
	appendPart := func(dst []byte, v any, depth int) ([]byte, error) {
		compact, err := encode(v)
		if err != nil {
			return nil, err
		}
		start, most := len(dst), b.Most(len(compact))
		dst, ok := Append(dst, compact, unit, depth, most)
		if !ok {
			return nil, Error(most)
		}
		return dst, b.Add(len(compact), len(dst)-start)
	}
	short, lists := shorten(v)
	text, err := appendPart(nil, short, 0)
	if err != nil {
		return err
	}
	var part []byte
	for _, list := range lists {
		// Lines begin with as many units as they are deep, so that this key is the field.
		key := "\n" + unit + strconv.Quote(list.field) + ": [\n"
		end := bytes.Index(text, []byte(key)) + len(key)
		end += bytes.Index(text[end:], []byte("\n"+unit+"]"))
		if _, err := w.Write(text[:end]); err != nil {
			return err
		}
		text = text[end:]
		for i := range list.rest.Len() {
			part = Newline(append(part[:0], ','), unit, 2)
			if part, err = appendPart(part, list.rest.Index(i).Addr().Interface(), 2); err != nil {
				return err
			}
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// longList is a list that is a field of a struct, without its first item.
type longList struct {
	field string // its name in JSON
	rest  reflect.Value
}

// shorten returns a copy of a struct that has only the first item of long lists, and these lists; v itself if it has none.
func shorten(v any) (any, []longList) {
	of := reflect.ValueOf(v)
	pointer := of.Kind() == reflect.Pointer
	if pointer {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct || isMarshaler(of.Type()) {
		return v, nil
	}
	short := reflect.New(of.Type())
	short.Elem().Set(of)
	var lists []longList
	for i := range of.NumField() {
		field, value := of.Type().Field(i), of.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if !field.IsExported() || name == "" || name == "-" || value.Kind() != reflect.Slice || value.Len() < inParts ||
			value.Type().Elem().Kind() == reflect.Uint8 || isMarshaler(value.Type()) {
			continue
		}
		short.Elem().Field(i).Set(value.Slice(0, 1))
		lists = append(lists, longList{name, value.Slice(1, value.Len())})
	}
	switch {
	case lists == nil:
		return v, nil
	case pointer:
		return short.Interface(), lists
	}
	return short.Elem().Interface(), lists
}

// isMarshaler tells whether a type says itself what its JSON is.
func isMarshaler(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}
