package declcfg

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/shape"
)

const csvKind = "ClusterServiceVersion"

// Objects decodes the bundle's olm.bundle.object properties into the JSON of its manifests, in the order of the
// properties. A property without data (old catalogs name a file instead) gives no object.
func (b *Bundle) Objects() ([][]byte, error) {
	var objects [][]byte
	for i := range b.Properties {
		if b.Properties[i].Type != PropertyBundleObject {
			continue
		}
		object, err := bundleObjectJSON(nil, b.Properties[i].Value)
		if err != nil {
			return nil, fmt.Errorf("package %q, bundle %q: parse property at index %d as bundle object: %w", b.Package,
				b.Name, i, err)
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// Manifests decodes the bundle's objects as [Bundle.Objects] does, and also returns the result of [Bundle.CSV].
func (b *Bundle) Manifests() (objects [][]byte, csv json.RawMessage, err error) {
	if objects, err = b.Objects(); err != nil {
		return nil, nil, err
	}
	for _, object := range objects {
		if jsonscan.Kind(object) == csvKind {
			return objects, object, nil
		}
	}
	return objects, nil, nil
}

// bundleObjectJSON decodes the value of an olm.bundle.object property; nil if it has no data. The result may use the
// memory of scratch.
func bundleObjectJSON(scratch, value []byte) ([]byte, error) {
	data, err := bundleObjectData(scratch, value)
	if err != nil || data == nil {
		return nil, err
	}
	return objectJSON(data)
}

// bundleObjectData returns the manifest in a property value, JSON or YAML as stored, in scratch if it fits.
func bundleObjectData(scratch, value []byte) ([]byte, error) {
	const prefix, suffix = `{"data":"`, `"}`
	if rest, ok := bytes.CutPrefix(value, []byte(prefix)); ok {
		if encoded, ok := bytes.CutSuffix(rest, []byte(suffix)); ok && bytes.IndexByte(encoded,
			'\\') < 0 && bytes.IndexByte(encoded, '"') < 0 {
			size := base64.StdEncoding.DecodedLen(len(encoded))
			if scratch == nil || cap(scratch) < size {
				scratch = make([]byte, size)
			}
			n, err := base64.StdEncoding.Decode(scratch[:size], encoded)
			return scratch[:n], err
		}
	}
	var v struct {
		Data []byte `json:"data"`
	}
	err := json.Unmarshal(value, &v)
	return v.Data, err
}

// objectJSON converts a manifest to JSON.
func objectJSON(data []byte) ([]byte, error) {
	if t := bytes.TrimLeft(data, " \t\r\n"); len(t) > 0 && t[0] == '{' && jsontext.Value(data).IsValid(
		jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) {
		return data, nil
	}
	return canon.AppendYAML(nil, data, canon.Limits{}, nil)
}

// CSV returns the JSON of the bundle's ClusterServiceVersion: its first object of that kind. It is nil if the bundle
// has none, as in catalogs with an olm.csv.metadata property instead.
func (b *Bundle) CSV() (json.RawMessage, error) {
	for i := range b.Properties {
		if b.Properties[i].Type != PropertyBundleObject {
			continue
		}
		object, err := bundleObjectJSON(nil, b.Properties[i].Value)
		if err != nil {
			return nil, fmt.Errorf("package %q, bundle %q: parse property at index %d as bundle object: %w", b.Package,
				b.Name, i, err)
		}
		if object != nil && jsonscan.Kind(object) == csvKind {
			return object, nil
		}
	}
	return nil, nil
}

// SubstitutesFor returns the name of the bundle that this bundle substitutes for, from its CSV or else from the CSV's
// metadata; empty if neither has it or the CSV cannot be read. After [Bundle.Reduce] it is known only if the bundle's
// version has build metadata.
func (b *Bundle) SubstitutesFor() string {
	if b.loaded != whole {
		return b.substitutesFor
	}
	if csv, err := b.CSV(); err == nil && csv != nil {
		var v struct {
			Metadata struct {
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if json.Unmarshal(csv, &v) == nil && v.Metadata.Annotations[AnnotationSubstitutesFor] != "" {
			return v.Metadata.Annotations[AnnotationSubstitutesFor]
		}
	}
	for _, p := range b.Properties {
		if p.Type != PropertyCSVMetadata {
			continue
		}
		var v struct {
			Annotations map[string]string `json:"annotations"`
		}
		if json.Unmarshal(p.Value, &v) == nil && v.Annotations[AnnotationSubstitutesFor] != "" {
			return v.Annotations[AnnotationSubstitutesFor]
		}
	}
	return b.substitutesFor
}

// SetSubstitutesFor is for a bundle whose manifests are stored elsewhere and are not loaded: it sets what they say that
// the bundle substitutes for.
func (b *Bundle) SetSubstitutesFor(name string) { b.substitutesFor = name }

// keepSubstitutesFor keeps what the manifests say that the bundle substitutes for, if its version depends on that.
func (b *Bundle) keepSubstitutesFor() {
	name := ""
	if p, err := b.PackageProperty(); err == nil && strings.Contains(p.Version, "+") {
		name = b.SubstitutesFor()
	}
	b.substitutesFor = name
}

// reduce checks the bundle's large properties and drops their values, for a skeleton load.
func (b *Bundle) reduce() {
	b.keepSubstitutesFor()
	for i := range b.Properties {
		p := &b.Properties[i]
		switch p.Type {
		case PropertyCSVMetadata:
			if err := parseProperty(p); err != nil && b.propertyErr == nil {
				b.propertyErr = newPropertyError(i, p, err)
			}
			p.Value = droppedValue
		case PropertyBundleObject:
			p.Value = droppedValue
		}
	}
	b.loaded = skeleton
}

var droppedValue = json.RawMessage("{}")

// propertyError identifies an undecodable property of a bundle.
type propertyError struct {
	index  int
	typ    string
	err    error
	empty  bool          // there is no value
	faults []shape.Fault // in the value
}

func newPropertyError(index int, p *Property, err error) *propertyError {
	e := &propertyError{index: index, typ: p.Type, err: err, empty: len(p.Value) == 0}
	if s := shapeOf[p.Type]; s != nil {
		e.faults = faultsOf(s, p.Value)
	}
	return e
}

// Error returns opm's text.
func (e *propertyError) Error() string {
	return fmt.Sprintf("parse property[%d] of type %q: %v", e.index, e.typ, e.err)
}

func (e *propertyError) Unwrap() error { return e.err }

// problems calls report for each fault with its path in the bundle and its text.
func (e *propertyError) problems(report func(path []any, text string)) {
	value := []any{"properties", e.index}
	if len(e.faults) == 0 {
		text := shape.Explain(nil, e.err).Error()
		if e.empty {
			text = canon.PathName(value) + " has no value"
		}
		report(value, fmt.Sprintf("property of type %s: %s", fault.Quote(e.typ), text))
	}
	for _, f := range e.faults {
		f.Path = slices.Concat(value, []any{"value"}, f.Path)
		report(f.Path, fmt.Sprintf("property of type %s: %s", fault.Quote(e.typ), f))
	}
}

// checkObjects decodes every object of the bundle and calls each, unless that is nil. Objects are decoded into scratch,
// which is returned, grown to the largest.
func (b *Bundle) checkObjects(scratch []byte, each func(object []byte)) ([]byte, error) {
	for i := range b.Properties {
		if b.Properties[i].Type != PropertyBundleObject {
			continue
		}
		b.HasObjects = true
		value := b.Properties[i].Value
		if size := base64.StdEncoding.DecodedLen(len(value)); cap(scratch) < size {
			scratch = make([]byte, 0, 2*size)
		}
		object, err := bundleObjectJSON(scratch, value)
		if err != nil {
			return scratch,
				fmt.Errorf(
					"read bundle objects: package %q, bundle %q: parse property at index %d as bundle object: %w",
					b.Package, b.Name, i, err)
		}
		if object != nil && each != nil {
			each(object)
		}
	}
	return scratch, nil
}
