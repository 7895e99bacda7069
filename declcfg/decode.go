package declcfg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// errNotPlain is returned by the scanner for a blob that encoding/json has to decode.
var errNotPlain = errors.New("not in plain form")

// errNoObject is opm's error for a document without content.
var errNoObject = errors.New("object '' is missing root schema field")

// newMeta returns the Meta of a canonical JSON document, without copying it. It has a schema, unless schemaless is set.
func newMeta(doc []byte, schemaless bool) (*Meta, error) {
	if len(doc) == 0 || doc[0] != '{' {
		if schemaless && bytes.Equal(doc, []byte("null")) { // a file of comments only
			return &Meta{Blob: doc}, nil
		}
		if bytes.Equal(doc, []byte("null")) {
			return nil, errNoObject
		}
		opm := fmt.Sprintf("json: cannot unmarshal %s into Go value of type map[string]interface {}", jsonKind(doc))
		return nil, &typeError{opm: opmReading + opm, faults: faultsOf(blobShape, doc)}
	}
	m := &Meta{Blob: doc}
	var opm, twice []string
	seen := map[string]bool{}
	s := newScanner(doc)
	s.Object(func(key []byte) {
		for _, field := range [...]struct {
			name string
			into *string
		}{{"schema", &m.Schema}, {"package", &m.Package}, {"name", &m.Name}} {
			if !isKey(key, field.name) {
				continue
			}
			switch {
			case seen[field.name]:
				twice = append(twice, field.name)
				opm = append(opm, fmt.Sprintf("duplicate keys for key %q", field.name))
			case s.Peek() == '"':
				*field.into = s.String()
				seen[field.name] = true
				return
			case s.Peek() == 'n':
				seen[field.name] = true
			default:
				value := s.Value()
				opm = append(opm, fmt.Sprintf("expected value for key %q to be a string, got %s: %.80s", field.name,
					jsonKind(value), value))
				return
			}
		}
		s.Value()
	})
	switch {
	case !s.Done():
		return nil, fmt.Errorf("malformed object")
	case opm != nil:
		e := &typeError{meta: m, opm: opmReading + strings.Join(opm, "\n"), faults: faultsOf(blobShape, doc)}
		for _, name := range twice {
			e.texts = append(e.texts, fmt.Sprintf("the key %q is there twice", name))
		}
		return nil, e
	case m.Schema == "" && !schemaless:
		return nil, fmt.Errorf("object '%.80s\n' is missing root schema field", doc)
	}
	return m, nil
}

func isKey(key []byte, name string) bool {
	if string(key) == name {
		return true
	}
	if !jsonscan.FoldsTo(key, name) {
		return false
	}
	var s string
	if json.Unmarshal([]byte(`"`+string(key)+`"`), &s) != nil {
		return false
	}
	return strings.EqualFold(s, name)
}

func jsonKind(value []byte) string {
	if len(value) == 0 {
		return "nothing"
	}
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	case 'n':
		return "null"
	}
	return "number"
}

// Parse decodes a Meta of a known schema to its typed blob, and returns any other Meta unchanged. The blob shares
// memory with the Meta.
func (m *Meta) Parse() (Blob, error) {
	b, _, err := parse(m)
	return b, err
}

// parse is [Meta.Parse]. odd is whether the blob is of an unknown schema or may have fields that its schema does not
// define.
func parse(m *Meta) (b Blob, odd bool, err error) {
	if s := schemaNamed(m.Schema); s != nil {
		return s.decode(m)
	}
	return m, true, nil
}

// unknownFields returns the members of an object that are not known fields.
func unknownFields(doc []byte, known []string) ([]Field, error) {
	var fields []Field
	s := newScanner(doc)
	s.Object(func(key []byte) {
		value := s.Value()
		for _, name := range known {
			if isKey(key, name) {
				return
			}
		}
		var name string
		if json.Unmarshal([]byte(`"`+string(key)+`"`), &name) != nil {
			s.Fail()
			return
		}
		fields = append(fields, Field{Name: name, Value: value})
	})
	if s.Failed() {
		return nil, errNotPlain
	}
	return fields, nil
}
