package declcfg

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
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
func Parse(m *Meta) (Blob, error) {
	odd := false
	return parse(m, &odd)
}

// parse is [Parse]. It sets odd if the blob is of an unknown schema or may have fields that its schema does not define.
func parse(m *Meta, odd *bool) (Blob, error) {
	switch m.Schema {
	case SchemaPackage:
		return parseAs(m, odd, &Package{Pos: m.Pos}, (*scanner).pkg, packageFields,
			func(f *jsonPackage, p *Package) { f.to(p) })
	case SchemaChannel:
		return parseAs(m, odd, &Channel{Pos: m.Pos}, (*scanner).channel, channelFields,
			func(f *jsonChannel, c *Channel) { f.to(c) })
	case SchemaBundle:
		return parseAs(m, odd, &Bundle{Pos: m.Pos}, (*scanner).bundle, bundleFields,
			func(f *jsonBundle, b *Bundle) { f.to(b) })
	case SchemaDeprecations:
		return parseAs(m, odd, &Deprecations{Pos: m.Pos}, (*scanner).deprecations, deprecationsFields,
			func(f *jsonDeprecations, d *Deprecations) { f.to(d) })
	}
	*odd = true
	return m, nil
}

// parseAs decodes a blob with the scanner or, if that fails, with encoding/json through a struct F, which also gives
// the error for invalid input.
func parseAs[T any, F any, P interface {
	*T
	Blob
}](m *Meta, odd *bool, blob P, scan func(*scanner, P), known []string, to func(*F, P)) (Blob, error) {
	pos := blob.Position()
	s := newScanner(m.Blob)
	scan(&s, blob)
	if s.Done() {
		*odd = s.odd
		return blob, nil
	}
	*odd = true
	var fields F
	if err := json.Unmarshal(m.Blob, &fields); err != nil {
		e := &typeError{meta: m, opm: fmt.Sprintf("parse %s %q: %v", m.Schema, m.Name, err),
			faults: faultsOf(schemaShapes[m.Schema], m.Blob)}
		if e.faults == nil {
			e.texts = []string{shape.Explain(m.Blob, err).Error()}
		}
		return nil, e
	}
	fresh := P(new(T))
	to(&fields, fresh)
	unknown, err := unknownFields(m.Blob, known)
	if err != nil {
		return nil, fmt.Errorf("parse %s %q: %w", m.Schema, m.Name, err)
	}
	setOrigin(fresh, pos, unknown)
	return fresh, nil
}

func setOrigin(b Blob, pos Position, unknown []Field) {
	switch b := b.(type) {
	case *Package:
		b.Pos, b.Unknown = pos, unknown
	case *Channel:
		b.Pos, b.Unknown = pos, unknown
	case *Bundle:
		b.Pos, b.Unknown = pos, unknown
	case *Deprecations:
		b.Pos, b.Unknown = pos, unknown
	}
}

var (
	packageFields      = []string{"schema", "name", "defaultChannel", "icon", "description", "properties"}
	channelFields      = []string{"schema", "name", "package", "entries", "properties"}
	bundleFields       = []string{"schema", "name", "package", "image", "properties", "relatedImages"}
	deprecationsFields = []string{"schema", "package", "entries"}
)

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
