package safety

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"reflect"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
)

// pool shares what is equal in schemas: the versions of one definition, and a definition in two versions of a bundle,
// differ in little, so that many of them take hardly more memory than one, and what they share is neither decoded again
// nor compared.
type pool struct {
	properties map[Digest]map[string]apiextensionsv1.JSONSchemaProps
	items      map[Digest]*apiextensionsv1.JSONSchemaPropsOrArray
	values     map[Digest]*apiextensionsv1.JSONSchemaPropsOrBool
	plain      map[string]plain // by their text
	schemas    int              // how many it holds, a long one as several
}

// plain is a schema without properties, items and values of its own.
type plain struct {
	schema *apiextensionsv1.JSONSchemaProps
	extent // with the schemas in its lists, such as allOf
}

func newPool() *pool {
	return &pool{map[Digest]map[string]apiextensionsv1.JSONSchemaProps{}, map[Digest]*apiextensionsv1.JSONSchemaPropsOrArray{},
		map[Digest]*apiextensionsv1.JSONSchemaPropsOrBool{}, map[string]plain{}, 0}
}

// read decodes a definition as convert does, without the descriptions that strip removes, and with what the pool has. It
// returns nil for one that has an oddity or is beyond a limit.
func (p *pool) read(text []byte) *apiextensionsv1.CustomResourceDefinition {
	text, err := canon.AppendJSON(make([]byte, 0, len(text)), text, canon.Limits{MaxDepth: 3 * maxNesting}, nil)
	if err != nil {
		return nil
	}
	r := reader{Scanner: jsonscan.NewScanner(text), pool: p}
	var outer []byte // the definition with empty schemas
	var schemas []*apiextensionsv1.JSONSchemaProps
	done := 0
	r.At(func() {
		outer = append(append(outer, text[done:r.Offset()]...), "{}"...)
		s, _ := r.schema(0, false)
		schemas, done = append(schemas, s), r.Offset()
	}, "spec", "versions", "[]", "schema", "openAPIV3Schema")
	if !r.Done() {
		return nil
	}
	out, err := convert[apiextensionsv1.CustomResourceDefinition](append(outer, text[done:]...))
	if err != nil {
		return nil
	}
	for i := range out.Spec.Versions {
		if s := out.Spec.Versions[i].Schema; s != nil && s.OpenAPIV3Schema != nil {
			s.OpenAPIV3Schema, schemas = schemas[0], schemas[1:]
		}
	}
	return out
}

// convert decodes an object as operator-controller does, values of any type by way of their generic form, so that a
// number or a text has one spelling.
func convert[T any](text []byte) (*T, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(text, &content); err != nil {
		return nil, err
	}
	out := new(T)
	return out, runtime.DefaultUnstructuredConverter.FromUnstructured(content, out)
}

// reader reads the schemas of a definition into a pool. What is equal is found before it is decoded: by a digest of the
// text of a schema, in which each schema within it has its digest.
type reader struct {
	jsonscan.Scanner
	pool    *pool
	schemas int     // how many were read
	open    []byte  // what is known of the texts of the schemas that are being read
	named   []named // the properties of these schemas
}

// named is a property.
type named struct {
	name   []byte
	schema *apiextensionsv1.JSONSchemaProps
}

// schema reads a schema. described is true where descriptions have a part in the comparison.
func (r *reader) schema(depth int, described bool) (*apiextensionsv1.JSONSchemaProps, Digest) {
	const n = len(Digest{})
	var none [3 * n]byte
	start := len(r.open)
	r.open = append(r.open, none[:]...) // for the digests of what is shared
	var within apiextensionsv1.JSONSchemaProps
	var description []byte
	oneOf, shares := false, false
	r.Object(func(key []byte) {
		name, isObject := string(key), r.Peek() == '{'
		switch {
		case name == "properties" && isObject:
			m, d := r.properties(depth+1, described)
			copy(r.open[start:], d[:])
			within.Properties, shares = m, true
		case name == "items" && isObject:
			s, d := r.schema(depth+1, described)
			if r.pool.items[d] == nil && !r.Failed() {
				r.pool.items[d] = &apiextensionsv1.JSONSchemaPropsOrArray{Schema: s}
				r.pool.schemas++
			}
			copy(r.open[start+n:], d[:])
			within.Items, shares = r.pool.items[d], true
		case name == "additionalProperties" && isObject:
			s, d := r.schema(depth+1, true)
			if r.pool.values[d] == nil && !r.Failed() {
				r.pool.values[d] = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: s}
				r.pool.schemas++
			}
			copy(r.open[start+2*n:], d[:])
			within.AdditionalProperties, shares = r.pool.values[d], true
		case name == "description" && !described && r.Peek() == '"':
			description = r.Value()
		default:
			value := r.Value()
			oneOf = oneOf || name == "oneOf" && string(value) != "[]"
			r.add(key, value)
		}
	})
	if oneOf && description != nil { // as strip does
		r.add([]byte("description"), description)
	}
	d := Digest(sha256.Sum256(r.open[start:]))
	s := r.plain(r.open[start+len(none):], depth)
	r.open = r.open[:start]
	if shares && !r.Failed() {
		whole := *s
		whole.Properties, whole.Items, whole.AdditionalProperties = within.Properties, within.Items, within.AdditionalProperties
		s = &whole
	}
	return s, d
}

// add adds a member to the text of the schema that is being read.
func (r *reader) add(key, value []byte) {
	r.open = append(append(append(r.open, '"'), key...), `":`...)
	r.open = append(append(r.open, value...), ',')
}

// properties reads the properties of a schema.
func (r *reader) properties(depth int, described bool) (map[string]apiextensionsv1.JSONSchemaProps, Digest) {
	start, first := len(r.open), len(r.named)
	r.Object(func(key []byte) {
		if r.Peek() != '{' || bytes.IndexByte(key, '\\') >= 0 {
			r.Fail()
			return
		}
		r.open = append(binary.BigEndian.AppendUint32(r.open, uint32(len(key))), key...)
		s, d := r.schema(depth, described)
		r.open = append(r.open, d[:]...)
		r.named = append(r.named, named{key, s})
	})
	d := Digest(sha256.Sum256(r.open[start:]))
	out := r.pool.properties[d]
	if out == nil && !r.Failed() {
		out = make(map[string]apiextensionsv1.JSONSchemaProps, len(r.named)-first)
		for _, p := range r.named[first:] {
			out[string(p.name)] = *p.schema
		}
		r.pool.properties[d] = out
		r.pool.schemas += len(out)
	}
	r.open, r.named = r.open[:start], r.named[:first]
	return out, d
}

// plain returns the schema of members that each have a comma after them.
func (r *reader) plain(members []byte, depth int) *apiextensionsv1.JSONSchemaProps {
	p, ok := r.pool.plain[string(members)]
	if !ok && !r.Failed() {
		text := append(append([]byte{'{'}, bytes.TrimSuffix(members, []byte(","))...), '}')
		s, err := convert[apiextensionsv1.JSONSchemaProps](text)
		if p = (plain{schema: s}); err != nil || p.measure(s, 0) != nil {
			r.Fail()
		} else if !bytes.Contains(members, []byte("oneOf")) { // the library compares addresses of what is in such a list
			r.pool.plain[string(members)] = p
			r.pool.schemas += 1 + len(members)>>10
		}
	}
	if r.schemas += p.schemas; r.schemas > maxNodes || depth+p.depth > maxNesting {
		r.Fail()
	}
	return p.schema
}

// sharePool reports whether two schemas have the same properties and items by way of a pool.
func sharePool(a, b *apiextensionsv1.JSONSchemaProps) bool {
	return a.Items == b.Items && reflect.ValueOf(a.Properties).Pointer() == reflect.ValueOf(b.Properties).Pointer()
}
