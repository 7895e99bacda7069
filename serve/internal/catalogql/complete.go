package catalogql

import (
	"fmt"
	"math"
	"reflect"

	"github.com/graphql-go/graphql"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// value writes a value as the type of its field says. t is the type of the object that has the field.
func (x *execution) value(as graphql.Output, t *graphql.Object, s *selection, value any, at *path) error {
	if required, ok := as.(*graphql.NonNull); ok {
		if isNull(value) { // only the library's own types have such fields, and values for them
			return x.failed(s, at, fmt.Sprintf("Cannot return null for non-nullable field %v.%v.", t.Name(),
				s.definition.Name))
		}
		return x.value(required.OfType, t, s, value, at)
	}
	if isNull(value) {
		return x.null()
	}
	switch as := as.(type) {
	case *graphql.List:
		return x.list(as.OfType, t, s, value, at)
	case *graphql.Scalar:
		return x.scalar(as.Serialize(value))
	case *graphql.Enum:
		return x.scalar(as.Serialize(value))
	case *graphql.Object:
		return x.object(as, s.selectBelow(x, as), value, at)
	default: // catalogs have no interfaces and unions
		return x.failed(s, at, fmt.Sprintf("Cannot complete value of unexpected type \"%v.\"", as))
	}
}

func (x *execution) scalar(value any) error {
	if isNull(value) {
		return x.null()
	}
	return x.marshal(value)
}

// list writes a list: a page of blobs, one after the other, a list of a blob, or one of the library.
func (x *execution) list(of graphql.Output, t *graphql.Object, s *selection, value any, at *path) error {
	n := 0
	element := func(v any) error {
		if n > 0 {
			x.out.WriteByte(',')
		}
		if err := x.ctx.Err(); err != nil {
			return err
		}
		n++
		return x.value(of, t, s, v, &path{at, n - 1})
	}
	switch value := value.(type) {
	case page:
		x.out.WriteByte('[')
		for i := value.from; i < value.to; i++ {
			text, err := x.service.blobs.Read(value.schema, i)
			if err != nil {
				return err
			}
			if err := element(raw(text)); err != nil {
				return err
			}
		}
	case raw:
		if value[0] != '[' {
			return x.notIterable(t, s, at)
		}
		var err error
		x.out.WriteByte('[')
		jsonscan.Elements(value, func(v []byte) bool {
			err = element(raw(v))
			return err == nil
		})
		if err != nil {
			return err
		}
	default:
		all := reflect.ValueOf(value)
		if all.Kind() != reflect.Slice {
			return x.notIterable(t, s, at)
		}
		x.out.WriteByte('[')
		for i := range all.Len() {
			if err := element(all.Index(i).Interface()); err != nil {
				return err
			}
		}
	}
	return x.out.WriteByte(']')
}

func (x *execution) notIterable(t *graphql.Object, s *selection, at *path) error {
	return x.failed(s, at, fmt.Sprintf("User Error: expected iterable, but did not find one for field %v.%v.", t.Name(),
		s.definition.Name))
}

// isNull reports whether a value is written as null.
func isNull(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case raw:
		return len(v) == 0 || v[0] == 'n'
	case float64:
		return math.IsNaN(v)
	}
	v := reflect.ValueOf(value)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
