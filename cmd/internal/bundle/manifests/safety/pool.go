package safety

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// pool shares what is equal in schemas: the versions of one definition differ in little, so that many of them take
// hardly more memory than one, and what they share need not be compared.
type pool struct {
	properties map[Digest]map[string]apiextensionsv1.JSONSchemaProps
	items      map[Digest]*apiextensionsv1.JSONSchemaPropsOrArray
	values     map[Digest]*apiextensionsv1.JSONSchemaPropsOrBool
	schemas    int // how many it holds
}

func newPool() *pool {
	return &pool{map[Digest]map[string]apiextensionsv1.JSONSchemaProps{},
		map[Digest]*apiextensionsv1.JSONSchemaPropsOrArray{}, map[Digest]*apiextensionsv1.JSONSchemaPropsOrBool{}, 0}
}

// share replaces what is in a schema by what is equal in the pool, and returns the digest of its content.
func (p *pool) share(s *apiextensionsv1.JSONSchemaProps) (Digest, error) {
	sum := sha256.New()
	plain := *s
	if len(s.Properties) > 0 {
		list := sha256.New()
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			inner := s.Properties[name]
			d, err := p.share(&inner)
			if err != nil {
				return d, err
			}
			s.Properties[name] = inner
			at := sha256.Sum256([]byte(name))
			list.Write(at[:])
			list.Write(d[:])
		}
		d := Digest(list.Sum(nil))
		if p.properties[d] == nil {
			p.properties[d] = s.Properties
			p.schemas += len(s.Properties)
		}
		s.Properties, plain.Properties = p.properties[d], nil
		sum.Write([]byte("properties"))
		sum.Write(d[:])
	}
	if s.Items != nil && s.Items.Schema != nil && len(s.Items.JSONSchemas) == 0 {
		d, err := p.share(s.Items.Schema)
		if err != nil {
			return d, err
		}
		if p.items[d] == nil {
			p.items[d] = s.Items
			p.schemas++
		}
		s.Items, plain.Items = p.items[d], nil
		sum.Write([]byte("items"))
		sum.Write(d[:])
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && s.AdditionalProperties.Allows {
		d, err := p.share(s.AdditionalProperties.Schema)
		if err != nil {
			return d, err
		}
		if p.values[d] == nil {
			p.values[d] = s.AdditionalProperties
			p.schemas++
		}
		s.AdditionalProperties, plain.AdditionalProperties = p.values[d], nil
		sum.Write([]byte("values"))
		sum.Write(d[:])
	}
	// An empty list is not written as none is where the library writes differences.
	fmt.Fprint(sum, s.Properties != nil, s.Required != nil, s.Enum != nil, s.AllOf != nil, s.AnyOf != nil, s.OneOf != nil)
	text, err := json.Marshal(plain)
	sum.Write(text)
	return Digest(sum.Sum(nil)), err
}

// sharePool reports whether two schemas have the same properties and items by way of a pool.
func sharePool(a, b *apiextensionsv1.JSONSchemaProps) bool {
	return a.Items == b.Items && reflect.ValueOf(a.Properties).Pointer() == reflect.ValueOf(b.Properties).Pointer()
}
