package safety

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// Limits of a definition; the real program has none. API servers take no objects of more than 3 MB.
const (
	maxText     = 16 << 20
	maxNesting  = 200     // of schemas; a manifest of a bundle is nested to 100
	maxVersions = 1_000   // of a definition
	maxNodes    = 200_000 // schemas in a definition
)

// Digest identifies the text of a definition.
type Digest [sha256.Size]byte

// Definition is a CustomResourceDefinition of a bundle.
type Definition struct {
	// Name is its metadata.name.
	Name   string
	Digest Digest
	// Read returns the rendered manifest, JSON. It is called only for a pair of definitions that is not known yet.
	Read func() ([]byte, error)
}

// newDefinition returns a definition of a text, which it keeps.
func newDefinition(name string, text []byte) Definition {
	return Definition{name, sha256.Sum256(text), func() ([]byte, error) { return text, nil }}
}

// Definitions returns the CustomResourceDefinitions among rendered manifests that the preflight looks at: those of the
// version v1. Of two of one name it returns the last one, which a cluster keeps.
func Definitions(objects []manifests.Object) []Definition {
	var out []Definition
	at := map[string]int{}
	for _, o := range objects {
		if o.Kind != "CustomResourceDefinition" || o.APIVersion != apiextensionsv1.SchemeGroupVersion.String() {
			continue
		}
		d := newDefinition(o.Name, o.JSON)
		if i, ok := at[o.Name]; ok {
			out[i] = d
			continue
		}
		at[o.Name] = len(out)
		out = append(out, d)
	}
	return out
}

func limit(format string, a ...any) error {
	return fmt.Errorf("%w: %s", fault.ErrLimit, fmt.Sprintf(format, a...))
}

// crd is a decoded definition, without the descriptions that have no part in the comparison.
type crd struct {
	*apiextensionsv1.CustomResourceDefinition
}

// textOf returns the text of a definition, if it is small enough to be decoded.
func textOf(d Definition) ([]byte, error) {
	text, err := d.Read()
	if err != nil {
		return nil, err
	}
	if len(text) > maxText {
		return nil, limit("it has more than %d bytes", maxText)
	}
	if bytes.Count(text, []byte("{")) > 2*maxNodes { // refused before decoding takes memory
		return nil, limit("it has more than %d objects", 2*maxNodes)
	}
	return text, nil
}

// decode decodes a definition. What the API server would refuse and the library cannot take is an error.
func (p *pool) decode(text []byte) (*crd, error) {
	out, size := p.read(text), extent{}
	shared := out != nil
	if !shared {
		var err error
		if out, err = convert[apiextensionsv1.CustomResourceDefinition](text); err != nil {
			return nil, err
		}
	}
	if n := len(out.Spec.Versions); n > maxVersions {
		return nil, limit("it has more than %d versions", maxVersions)
	}
	seen := map[string]bool{}
	out.Status.StoredVersions = nil
	for i := range out.Spec.Versions {
		v := &out.Spec.Versions[i]
		if seen[v.Name] {
			return nil, fmt.Errorf("it has the version %q twice", v.Name)
		}
		seen[v.Name] = true
		if v.Schema == nil || v.Schema.OpenAPIV3Schema == nil {
			return nil, fmt.Errorf("its version %q has no schema (spec.versions[%d].schema.openAPIV3Schema), and the API "+
				"server refuses it", v.Name, i)
		}
		if v.Storage {
			out.Status.StoredVersions = append(out.Status.StoredVersions, v.Name)
		}
		if !shared {
			if err := size.measure(v.Schema.OpenAPIV3Schema, 0); err != nil {
				return nil, err
			}
			strip(v.Schema.OpenAPIV3Schema)
		}
	}
	p.schemas += size.schemas
	return &crd{out}, nil
}

// strip removes the descriptions of a schema and of its properties, which the configuration leaves out.
func strip(s *apiextensionsv1.JSONSchemaProps) {
	if len(s.OneOf) == 0 { // the library finds equal schemas in this list to differ, if anything else does
		s.Description = ""
	}
	for name := range s.Properties {
		inner := s.Properties[name]
		strip(&inner)
		s.Properties[name] = inner
	}
	if s.Items != nil && s.Items.Schema != nil {
		strip(s.Items.Schema)
	}
}

// extent is how many schemas a schema has, and how deep they are in it.
type extent struct{ schemas, depth int }

// measure adds the schemas of a schema within the limits.
func (e *extent) measure(s *apiextensionsv1.JSONSchemaProps, depth int) (err error) {
	e.depth = max(e.depth, depth)
	if e.schemas++; e.schemas > maxNodes {
		return limit("it has more than %d schemas", maxNodes)
	}
	if depth > maxNesting {
		return limit("its schema is nested deeper than %d", maxNesting)
	}
	visitSchemas(s, func(_ string, inner *apiextensionsv1.JSONSchemaProps) {
		if err == nil {
			err = e.measure(inner, depth+1)
		}
	})
	return err
}

// visitSchemas calls visit with each schema directly below a schema, such as those of properties and items, and with
// its name.
func visitSchemas(s *apiextensionsv1.JSONSchemaProps, visit func(name string, inner *apiextensionsv1.JSONSchemaProps)) {
	one := func(name string, s *apiextensionsv1.JSONSchemaProps) {
		if s != nil {
			visit(name, s)
		}
	}
	list := func(name string, all []apiextensionsv1.JSONSchemaProps) {
		for i := range all {
			visit(name, &all[i])
		}
	}
	byName := func(all map[string]apiextensionsv1.JSONSchemaProps) {
		for name, s := range all {
			visit(name, &s)
		}
	}
	byName(s.Properties)
	byName(s.PatternProperties)
	byName(s.Definitions)
	list("allOf", s.AllOf)
	list("anyOf", s.AnyOf)
	list("oneOf", s.OneOf)
	one("not", s.Not)
	if s.Items != nil {
		one("items", s.Items.Schema)
		list("items", s.Items.JSONSchemas)
	}
	if s.AdditionalProperties != nil {
		one("additionalProperties", s.AdditionalProperties.Schema)
	}
	if s.AdditionalItems != nil {
		one("additionalItems", s.AdditionalItems.Schema)
	}
	for name, d := range s.Dependencies {
		one(name, d.Schema)
	}
}
