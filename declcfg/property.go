package declcfg

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/jsonscan"
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
			return value, fmt.Errorf("property of type %q: %w", PropertyPackage, err)
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
		if sh.conforms(&s) && s.Done() {
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

// SingleProperties are the types of which OLM expects at most one property, besides olm.package: of two it uses none.
var SingleProperties = []string{"olm.maxOpenShiftVersion"}

// VersionNumbers calls found for each number in a property where a version is meant: the value of a type, or of a key,
// that ends with "version". YAML reads 4.20 without quotes as the number 4.2. path is that of the number in the value.
func VersionNumbers(p Property, found func(path []any, number string)) {
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

// CheckProperties returns the error of the first property of a known type with an undecodable value. Values dropped by
// [Bundle.Reduce] were checked then.
func (b *Bundle) CheckProperties() error {
	if first := b.badProperty(); first != nil {
		return b.propertiesError(first)
	}
	return nil
}

// badProperty returns the first undecodable property.
func (b *Bundle) badProperty() *propertyError {
	for i := range b.Properties {
		if b.droppedErr != nil && b.droppedErr.index <= i {
			break
		}
		if err := parseProperty(&b.Properties[i]); err != nil {
			return &propertyError{i, b.Properties[i].Type, err}
		}
	}
	return b.droppedErr
}

// propertiesError returns opm's error for a property.
func (b *Bundle) propertiesError(e *propertyError) error {
	return fmt.Errorf("parse properties for bundle %q: %v", b.Name, e)
}
