package declcfg

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/operator-bindery/bindery/internal/shape"
)

// schemas are the schemas whose blobs have a type of Go. All that this package does with such blobs follows these rows
// and the fields of the types: decoding, encoding, the search for unknown fields and for values of another kind, the
// package that a blob belongs to, and the order in which blobs are written.
//
// The fields of a type are those of its JSON object, in the order of writing. An empty field with "omitempty" is not
// written. A type without a field "package" belongs to the package of its name.
var schemas = []*schema{
	describe[Package](SchemaPackage, 0),
	describe[Channel](SchemaChannel, 1),
	describe[Bundle](SchemaBundle, 2),
	describe[Deprecations](SchemaDeprecations, 4),
}

// RankOther is the [Rank] of blobs that catalogs keep in [Catalog].Others. Only they may belong to no package.
const RankOther = 3

// schema is a row of [schemas].
type schema struct {
	name string
	// rank is the position of the blobs among those of their package, RankOther if the catalog has no slice for them.
	// Blobs of one rank are sorted by name, those of RankOther by schema.
	rank  int
	json  *jsonType
	shape *shape.Shape
	empty func() typedBlob
}

// typedBlob is a blob with a type for its schema.
type typedBlob interface {
	Blob
	// origin returns pointers to the fields of the blob that the schema does not define: its position, and its unknown
	// fields.
	origin() (*Position, *[]Field)
}

func describe[T any, P interface {
	*T
	typedBlob
}](name string, rank int) *schema {
	s := &schema{name: name, rank: rank, json: newJSONType(reflect.TypeFor[T]()), shape: shape.For[T](),
		empty: func() typedBlob { return P(new(T)) }}
	first := jsonField{name: "schema", quoted: []byte(`"schema"`), index: notInStruct}
	s.json.fields = slices.Insert(s.json.fields, 0, first)
	s.json.names = append(s.json.names, "schema")
	slices.Sort(s.json.names)
	return s
}

// schemaNamed returns the row of a schema, nil if its blobs have no type.
func schemaNamed(name string) *schema {
	for _, s := range schemas {
		if s.name == name {
			return s
		}
	}
	return nil
}

// schemaNames returns the names of the schemas with a type, sorted.
func schemaNames() []string {
	var names []string
	for _, s := range schemas {
		names = append(names, s.name)
	}
	slices.Sort(names)
	return names
}

// identify returns [Blob.BlobPackage] and [Blob.BlobName] of a blob with these fields.
func identify(schema, pkg, name string) (string, string) {
	if s := schemaNamed(schema); s != nil {
		if !slices.Contains(s.json.names, "package") {
			pkg = name
		}
		if !slices.Contains(s.json.names, "name") {
			name = ""
		}
	}
	return pkg, name
}

// Rank returns the rank of the blobs of a schema: the blobs of a package are written by rank.
func Rank(schema string) int {
	if s := schemaNamed(schema); s != nil {
		return s.rank
	}
	return RankOther
}

// writingOrder returns what the blobs of a package are sorted by where they are written: the rank, then the key.
func writingOrder(schema, name string) (rank int, key string) {
	if rank = Rank(schema); rank != RankOther {
		return rank, name
	}
	return rank, schema
}

// orderOf returns the [writingOrder] of a blob. A [Meta] comes after all typed blobs, even if its schema has a type.
func orderOf(b Blob) (rank int, key string) {
	if _, ok := b.(*Meta); ok {
		return RankOther, b.BlobSchema()
	}
	return writingOrder(b.BlobSchema(), b.BlobName())
}

// hasPlace reports whether blobs of a rank are written: all but [RankOther] need a package.
func hasPlace(rank int, pkg string) bool { return pkg != "" || rank == RankOther }

// decode returns the typed blob of a Meta, which shares memory with it. odd is whether the blob may have fields that
// the schema does not define.
func (sc *schema) decode(m *Meta) (b Blob, odd bool, err error) {
	blob := sc.empty()
	pos, unknown := blob.origin()
	*pos = m.Pos
	s := newScanner(m.Blob)
	s.object(sc.json, reflect.ValueOf(blob).Elem(), unknown)
	if s.Done() {
		return blob, s.odd, nil
	}
	b, err = sc.decodeAnyForm(m)
	return b, true, err
}

// decodeAnyForm is decode for blobs that are not in the usual form, by encoding/json, which also gives the error for
// invalid ones.
func (sc *schema) decodeAnyForm(m *Meta) (Blob, error) {
	blob := sc.empty()
	if err := json.Unmarshal(m.Blob, blob); err != nil {
		e := &typeError{meta: m, opm: fmt.Sprintf("parse %s %q: %v", m.Schema, m.Name, err),
			faults: faultsOf(sc.shape, m.Blob)}
		if e.faults == nil {
			e.texts = []string{shape.Explain(m.Blob, err).Error()}
		}
		return nil, e
	}
	sc.json.dropEmptyLists(reflect.ValueOf(blob).Elem())
	unknown, err := unknownFields(m.Blob, sc.json.names)
	if err != nil {
		return nil, fmt.Errorf("parse %s %q: %w", m.Schema, m.Name, err)
	}
	pos, fields := blob.origin()
	*pos, *fields = m.Pos, unknown
	return blob, nil
}
