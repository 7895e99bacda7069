package declcfg

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

// The property types that OLM defines. Properties of any other type are opaque.
const (
	PropertyPackage         = "olm.package"
	PropertyPackageRequired = "olm.package.required"
	PropertyGVK             = "olm.gvk"
	PropertyGVKRequired     = "olm.gvk.required"
	PropertyConstraint      = "olm.constraint"
	PropertyBundleObject    = "olm.bundle.object"
	PropertyCSVMetadata     = "olm.csv.metadata"
	PropertyLabel           = "olm.label"
	PropertyDeprecated      = "olm.deprecated"
)

// NewProperty makes a property with value as compact JSON, without HTML escaping.
func NewProperty(typ string, value any) (Property, error) {
	text, err := canon.Encode(value)
	if err != nil {
		return Property{}, fmt.Errorf("property %q: %w", typ, err)
	}
	return Property{Type: typ, Value: text}, nil
}

// NewBundleObject returns the olm.bundle.object property of one manifest.
func NewBundleObject(object []byte) Property {
	const prefix, suffix = `{"data":`, `}`
	value := make([]byte, 0, len(prefix)+base64.StdEncoding.EncodedLen(len(object))+2+len(suffix))
	value = append(value, prefix...)
	value = appendBase64(value, object)
	value = append(value, suffix...)
	return Property{Type: PropertyBundleObject, Value: value}
}

// PackageProperty returns the bundle's olm.package property, of which it must have exactly one.
func (b *Bundle) PackageProperty() (property.Package, error) {
	var value property.Package
	found := 0
	for _, p := range b.Properties {
		if p.Type != PropertyPackage {
			continue
		}
		found++
		if err := json.Unmarshal(p.Value, &value); err != nil {
			return value, fmt.Errorf("property of type %q: %w", PropertyPackage, shape.Explain(p.Value, err))
		}
	}
	if found != 1 {
		return value, fmt.Errorf("must have exactly 1 %q property, found %d", PropertyPackage, found)
	}
	return value, nil
}

// parseProperty checks that the value of a property of a known type can be decoded.
func parseProperty(p *Property) error {
	if sh, ok := shapeOf[p.Type]; ok {
		s := newScanner(p.Value)
		if sh.Conforms(&s.Scanner) && s.Done() {
			return nil
		}
	}
	var into any
	switch p.Type {
	case PropertyPackage:
		into = &property.Package{}
	case PropertyPackageRequired:
		into = &property.PackageRequired{}
	case PropertyGVK, PropertyGVKRequired:
		into = &property.GVK{}
	case PropertyCSVMetadata:
		into = &property.CSVMetadata{}
	default:
		if len(p.Value) > 0 {
			return nil
		}
		into = &json.RawMessage{}
	}
	return json.Unmarshal(p.Value, into)
}

// Check returns an error if the value of a property of a known type cannot be decoded, as in a catalog with it.
func (p *Property) Check() error { return parseProperty(p) }

// Single reports whether OLM expects at most one property of this type, besides olm.package: of two it uses none.
func (p *Property) Single() bool { return p.Type == "olm.maxOpenShiftVersion" }

// VersionNumbers calls found for each number in the property where a version is meant: the value of a type, or of a
// key, that ends with "version". YAML reads 4.20 without quotes as the number 4.2. path is that of the number in the
// value.
func (p *Property) VersionNumbers(found func(path []any, number string)) {
	versionNumbers(p.Type, p.Value, nil, found)
}

func versionNumbers(name string, value []byte, path []any, found func(path []any, number string)) {
	if len(value) == 0 {
		return
	}
	switch value[0] {
	case '{':
		jsonscan.Members(value, func(key, v []byte) bool {
			versionNumbers(string(key), v, append(path[:len(path):len(path)], string(key)), found)
			return true
		})
	case '[':
		i := 0
		jsonscan.Elements(value, func(v []byte) bool {
			versionNumbers(name, v, append(path[:len(path):len(path)], i), found)
			i++
			return true
		})
	case '"', 't', 'f', 'n':
	default:
		if strings.HasSuffix(strings.ToLower(name), "version") {
			found(path, string(value))
		}
	}
}

// CheckProperties returns a *[ValidationError] about properties of known types with undecodable values. Values dropped
// by [Bundle.Reduce] were checked then.
func (b *Bundle) CheckProperties() error {
	g := &graphBuilder{problems: &problemList{}}
	g.checkProperties(b)
	return g.problems.err()
}

// badProperties yields the undecodable properties, of those that were dropped the first one.
func (b *Bundle) badProperties() iter.Seq[*propertyError] {
	return func(yield func(*propertyError) bool) {
		for i := range b.Properties {
			p := &b.Properties[i]
			if b.propertyErr != nil && b.propertyErr.index == i {
				if !yield(b.propertyErr) {
					return
				}
			} else if err := parseProperty(p); err != nil && !yield(newPropertyError(i, p, err)) {
				return
			}
		}
	}
}

func (b *Bundle) opmPropertiesError(e *propertyError) string {
	return fmt.Sprintf("parse properties for bundle %q: %v", fault.Short(b.Name), e)
}
