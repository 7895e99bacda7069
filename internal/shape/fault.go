package shape

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/nearest"
)

// Kind is what a value is, with its article.
type Kind string

// The kinds of values.
const (
	String      Kind = "a string"
	Number      Kind = "a number"
	WholeNumber Kind = "a whole number"
	Boolean     Kind = "a boolean"
	Array       Kind = "a list"
	Mapping     Kind = "an object"
	Null        Kind = "null"
	Base64      Kind = "a string in base64"
)

// Of returns the kind of a JSON value.
func Of(value []byte) Kind {
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return Mapping
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Boolean
	case 'n':
		return Null
	}
	return Number
}

// Fault is a value of another kind than expected, or a field that is unknown.
type Fault struct {
	// Path are the names of fields and the indices of lists that lead to the value.
	Path []any
	Got  Kind
	// Want is what is expected, empty for an unknown field.
	Want Kind
	// Written is the value's text.
	Written string
	item    Kind // of a list that is expected
	// Known are the fields in whose place an unknown one stands.
	Known []string
}

// Field returns the name of the value in messages: entries[0].skips.
func (f Fault) Field() string { return canon.PathName(f.Path) }

// String describes the fault in words.
func (f Fault) String() string {
	if f.Want == "" {
		last := len(f.Path) - 1
		name, _ := f.Path[last].(string)
		text := fmt.Sprintf("unknown field %s (%s)", fault.Quote(name), Suggest(name, f.Known))
		if last > 0 {
			text = canon.PathName(f.Path[:last]) + ": " + text
		}
		return text
	}
	field := cmp.Or(f.Field(), "the document")
	text := field + " " + Mismatch(f.Got, f.Want, f.Written)
	if f.Want == Array && f.Got == String && f.item == String && len(f.Written) <= 100 {
		text += " (write [" + strconv.Quote(f.Written) + "])"
	}
	return text
}

// Suggest returns what to write in place of an unknown name.
func Suggest(name string, known []string) string {
	if near, found := nearest.Name(name, known); found {
		return "perhaps " + near
	}
	return "the fields are " + strings.Join(known, ", ")
}

// Mismatch says that a value is of one kind where another one is expected, and how to write it.
func Mismatch(got, want Kind, written string) string {
	text := "is " + string(got) + ", expected " + string(want)
	if fix := Fix(got, want, written); fix != "" {
		text += " (" + fix + ")"
	}
	return text
}

// Fix returns how to write a value as another kind, empty if that cannot be known.
func Fix(got, want Kind, written string) string {
	short := fault.Short(written)
	switch {
	case want == String && (got == Number || got == Boolean):
		return `write it in quotes: "` + short + `"`
	case got == String && want == Boolean && (written == "true" || written == "false"),
		got == String && (want == Number || want == WholeNumber) && isWhole([]byte(written)):
		return "write " + short + " without quotes"
	}
	return ""
}

// FaultOf returns what an error of decoding a value says about types, with the path in the value as far as it is known.
// It knows the errors of encoding/json and of its second version. ok is false for an error about something else.
func FaultOf(value []byte, err error) (f Fault, ok bool) {
	var wrong *json.UnmarshalTypeError
	var semantic *jsonv2.SemanticError
	switch {
	case errors.As(err, &wrong):
		got, written, _ := strings.Cut(wrong.Value, " ")
		f = Fault{Got: ofJSON(got), Want: ofType(wrong.Type), Written: written}
		// The offset is that of the value, or in a part of it.
		if f.Path = pathAt(value, wrong.Offset); namesOf(f.Path) != wrong.Field {
			f.Path = nil
			for _, name := range strings.Split(wrong.Field, ".") {
				if name != "" {
					f.Path = append(f.Path, name)
				}
			}
		}
	case errors.As(err, &semantic) && semantic.GoType != nil:
		f = Fault{Path: pointerPath(semantic.JSONPointer), Got: ofJSON(semantic.JSONKind.String()),
			Want: ofType(semantic.GoType)}
	default:
		return Fault{}, false
	}
	at := value
	for _, step := range f.Path {
		at = inside(at, step)
	}
	if text, isText := jsonscan.Text(at); isText {
		f.Written = text
	} else if f.Got != Mapping && f.Got != Array && len(at) > 0 {
		f.Written = string(at)
	}
	return f, true
}

// inside returns the value at a step, nil if there is none.
func inside(value []byte, step any) (found []byte) {
	switch step := step.(type) {
	case string:
		jsonscan.Members(value, func(key, v []byte) bool {
			if string(key) == step {
				found = v
			}
			return found == nil
		})
	case int:
		i := 0
		jsonscan.Elements(value, func(v []byte) bool {
			if i == step {
				found = v
			}
			i++
			return found == nil
		})
	}
	return found
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

// namesOf returns the keys of a path, separated by dots, as encoding/json names a field.
func namesOf(path []any) string {
	var names []string
	for _, step := range path {
		if name, ok := step.(string); ok {
			names = append(names, name)
		}
	}
	return strings.Join(names, ".")
}

// Explain returns an error of decoding a value about another type in words that name no type of Go, and any other error
// unchanged.
func Explain(value []byte, err error) error {
	f, ok := FaultOf(value, err)
	if !ok {
		return err
	}
	return &explained{f.String(), err}
}

// explained is an error of encoding/json in other words.
type explained struct {
	text string
	err  error
}

func (e *explained) Error() string { return e.text }
func (e *explained) Unwrap() error { return e.err }

// ofJSON returns the kind that the libraries call by a name.
func ofJSON(name string) Kind {
	switch name {
	case "object", "{":
		return Mapping
	case "array", "[":
		return Array
	case "string":
		return String
	case "bool", "true", "false":
		return Boolean
	case "null":
		return Null
	}
	return Number
}

// ofType returns the kind of value that is decoded to a type.
func ofType(t reflect.Type) Kind {
	if t == nil {
		return "another kind of value"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return ofType(t.Elem())
	case reflect.String:
		return String
	case reflect.Bool:
		return Boolean
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return Base64
		}
		return Array
	case reflect.Struct, reflect.Map:
		return Mapping
	case reflect.Float32, reflect.Float64:
		return Number
	}
	return WholeNumber
}

// Plain returns a message in which nothing names a type of Go: what encoding/json and the YAML libraries say about
// values of other types is replaced by other words. err, unless nil, is the error that the message is about.
func Plain(text string, err error) string {
	if !strings.Contains(text, "cannot unmarshal") {
		return text
	}
	eachTypeError(err, func(e *json.UnmarshalTypeError) {
		text = strings.ReplaceAll(text, e.Error(), Explain(nil, e).Error())
	})
	text = jsonText().ReplaceAllStringFunc(text, func(found string) string {
		m := jsonText().FindStringSubmatch(found)
		field := "the document"
		if m[2] != "" {
			field = m[2]
		}
		return field + " is " + string(ofJSON(m[1])) + ", expected " + string(ofName(m[3]))
	})
	return yamlText().ReplaceAllStringFunc(text, func(found string) string {
		m := yamlText().FindStringSubmatch(found)
		got, ok := map[string]Kind{"str": String, "int": WholeNumber, "float": Number, "bool": Boolean, "seq": Array,
			"map": Mapping}[m[1]]
		if !ok {
			got = "another value"
		}
		what := "a value"
		if m[2] != "" {
			what = fault.Quote(m[2])
		}
		return what + " is " + string(got) + ", expected " + string(ofName(m[3]))
	})
}

var (
	jsonText = lazyregexp.New(
		`json: cannot unmarshal (object|array|string|number|bool)(?: \S+)? into Go (?:struct field [^ .]*\.?(\S*)|value) of type (\S*[\w}\]])`)
	yamlText = lazyregexp.New("cannot unmarshal !!(\\w+)(?: `([^`]*)`)? into (\\S*[\\w}\\]])")
)

// eachTypeError calls f for each error about a type in a tree of errors.
func eachTypeError(err error, f func(*json.UnmarshalTypeError)) {
	if e, ok := err.(*json.UnmarshalTypeError); ok {
		f(e)
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		eachTypeError(e.Unwrap(), f)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			eachTypeError(inner, f)
		}
	}
}

// ofName returns the kind of value that is decoded to a type of Go with a name.
func ofName(name string) Kind {
	name = strings.TrimPrefix(name, "*")
	switch {
	case name == "string":
		return String
	case name == "bool":
		return Boolean
	case strings.HasPrefix(name, "int"), strings.HasPrefix(name, "uint"):
		if !strings.HasPrefix(name, "interface") {
			return WholeNumber
		}
	case strings.HasPrefix(name, "float"):
		return Number
	case name == "[]uint8", name == "[]byte":
		return Base64
	case strings.HasPrefix(name, "["):
		return Array
	case strings.HasPrefix(name, "map["), strings.HasPrefix(name, "struct"):
		return Mapping
	}
	return "another kind of value"
}
