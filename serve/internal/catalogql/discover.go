package catalogql

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// Limits of a type system. Real catalogs have some ten schemas with some ten fields.
const (
	maxSchemas = 300
	maxFields  = 500     // of one type
	maxAll     = 10000   // fields of all types
	maxName    = 1 << 10 // bytes of a schema's name or a key
	// maxBlob is the size of the largest blob that is answered, as in catalogd.
	maxBlob = 16 << 20
	// sampled is how many elements of a list decide on the type of its elements.
	sampled = 10
)

// scalar is the type of a field's values.
type scalar byte

const (
	asString scalar = iota
	asBoolean
	asInt
	asFloat
)

// field describes a key of blobs, or of the objects in a list of blobs.
type field struct {
	key    string // the first key with this name
	kind   scalar
	list   bool
	nested map[string]*field // of a list with objects
}

// schema is what is known of the blobs of one schema.
type schema struct {
	objects int
	fields  map[string]*field
}

// Discovery finds the fields of a catalog's blobs. The zero value is ready for use. It is not safe for concurrent use.
type Discovery struct {
	schemas map[string]*schema
	fields  int // of all types
	err     error
}

// Add takes in a blob as canonical JSON: compact, with sorted keys. Blobs without a schema are skipped, and so are the
// fields of blobs that are too large to be answered. The text is not kept.
//
// The first blob with a key decides on the type of its field; lists of objects get the fields of all of their objects.
func (d *Discovery) Add(name string, blob []byte) error {
	if d.err != nil || name == "" {
		return d.err
	}
	if d.schemas == nil {
		d.schemas = map[string]*schema{}
	}
	s := d.schemas[name]
	if s == nil {
		if len(d.schemas) == maxSchemas || len(name) > maxName {
			d.err = fmt.Errorf("the catalog has more than %d schemas, or one with a name of more than %d bytes",
				maxSchemas, maxName)
			return d.err
		}
		s = &schema{fields: map[string]*field{}}
		d.schemas[name] = s
	}
	s.objects++
	if len(blob) > maxBlob {
		return nil
	}
	jsonscan.Members(blob, func(rawKey, value []byte) bool {
		d.err = d.add(s.fields, keyText(rawKey), value, true)
		return d.err == nil
	})
	return d.err
}

// add takes in a member of an object. Only the fields of blobs look into their lists, so nested objects have no fields
// of nested objects.
func (d *Discovery) add(fields map[string]*field, key string, value []byte, deep bool) error {
	name := fieldName(key)
	known := fields[name]
	if known == nil {
		if d.fields++; len(fields) == maxFields || d.fields > maxAll || len(name) > maxName {
			return fmt.Errorf("a schema has more than %d fields, all have more than %d, or one has a name of more "+
				"than %d bytes", maxFields, maxAll, maxName)
		}
		known = &field{key: key}
		known.kind, known.list = typeOf(value, deep)
		fields[name] = known
	}
	if !deep || len(value) == 0 || value[0] != '[' {
		return nil
	}
	var err error
	n := 0
	jsonscan.Elements(value, func(element []byte) bool {
		if n++; n > sampled {
			return false
		}
		if element[0] == '{' {
			if known.nested == nil {
				known.nested = map[string]*field{}
			}
			jsonscan.Members(element, func(rawKey, value []byte) bool {
				err = d.add(known.nested, keyText(rawKey), value, false)
				return err == nil
			})
		}
		return err == nil
	})
	return err
}

// typeOf returns the type of a value, or of the elements of a list. The first element that is not null decides; lists
// of several kinds are strings. For the objects in lists the first element decides alone.
func typeOf(value []byte, deep bool) (kind scalar, list bool) {
	if len(value) == 0 || value[0] != '[' {
		return kindOf(value), false
	}
	var first []byte
	mixed, object, n := false, false, 0
	jsonscan.Elements(value, func(element []byte) bool {
		if n++; n > sampled || !deep && n > 1 {
			return false
		}
		object = object || element[0] == '{'
		switch {
		case element[0] == 'n':
		case first == nil:
			first = element
		default:
			mixed = mixed || jsonKind(element) != jsonKind(first)
		}
		return true
	})
	if mixed && !object {
		return asString, true
	}
	return kindOf(first), true
}

// jsonKind distinguishes strings, numbers, booleans, objects and lists by their first byte.
func jsonKind(value []byte) byte {
	switch c := value[0]; {
	case c == 't', c == 'f':
		return 'b'
	case c == '-' || isDigit(c):
		return '0'
	default:
		return c
	}
}

// kindOf returns the type for a single value. Whole numbers are Int, whatever their size.
func kindOf(value []byte) scalar {
	if len(value) == 0 {
		return asString
	}
	switch jsonKind(value) {
	case 'b':
		return asBoolean
	case '0':
		f, err := strconv.ParseFloat(string(value), 64)
		if err == nil && f == float64(int64(f)) {
			return asInt
		}
		return asFloat
	default:
		return asString
	}
}

// keyText returns a key that is written between quotes.
func keyText(raw []byte) string {
	for _, c := range raw {
		if c == '\\' {
			var key string
			if json.Unmarshal([]byte(`"`+string(raw)+`"`), &key) == nil {
				return key
			}
			break
		}
	}
	return string(raw)
}
