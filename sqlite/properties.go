package sqlite

import (
	"bytes"
	"cmp"
	"fmt"
	"sort"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/fault"
)

// propertiesOf returns the properties of a bundle without its manifests, sorted as in opm: by type, then by value.
func (db *DB) propertiesOf(p *pkg, b *bundle) ([]declcfg.Property, error) {
	w := propertyWriter{provided: map[gvk]bool{}, required: map[gvk]bool{}}
	hasPackage := false
	for _, row := range b.properties {
		switch row.typ {
		case declcfg.PropertyGVK:
			var api property.GVK
			if err := decode(row, &api); err != nil {
				return nil, err
			}
			w.provided[gvk{api.Group, api.Version, api.Kind}] = true
			continue
		case declcfg.PropertyPackage:
			hasPackage = true
		}
		if err := w.raw(row); err != nil {
			return nil, err
		}
	}
	if !hasPackage {
		w.value(declcfg.PropertyPackage, property.Package{PackageName: p.name, Version: b.version.s})
	}
	for _, api := range b.provided {
		w.provided[api] = true
	}
	for _, api := range b.required {
		w.required[api] = true
	}
	for _, row := range b.dependencies {
		if err := db.dependency(&w, p, b, row); err != nil {
			return nil, err
		}
	}
	for api := range w.provided {
		w.value(declcfg.PropertyGVK, property.GVK{Group: api.group, Kind: api.kind, Version: api.version})
	}
	for api := range w.required {
		w.value(declcfg.PropertyGVKRequired, property.GVK{Group: api.group, Kind: api.kind, Version: api.version})
	}
	if w.err != nil {
		return nil, w.err
	}
	sort.Slice(w.out, func(i, j int) bool { return compareProperties(&w.out[i], &w.out[j]) < 0 })
	return w.out, nil
}

// compareProperties orders properties by type and value.
func compareProperties(x, y *declcfg.Property) int {
	return cmp.Or(cmp.Compare(x.Type, y.Type), bytes.Compare(x.Value, y.Value))
}

// dependency adds the property that represents a dependency in a file-based catalog.
func (db *DB) dependency(w *propertyWriter, p *pkg, b *bundle, row propertyRow) error {
	dropped := func(reason string) {
		db.findings.add(Finding{Kind: Dropped, Package: p.name, Bundle: b.name, Field: "dependencies", Reason: reason})
	}
	compat := db.options.Compat == CompatOPM
	switch row.typ {
	case declcfg.PropertyGVK:
		var api property.GVK
		if err := decode(row, &api); err != nil {
			return err
		}
		if api.Kind == "" && !compat {
			dropped("a dependency of type olm.gvk names no kind: " + fault.Quote(row.value))
			return nil
		}
		w.required[gvk{api.Group, api.Version, api.Kind}] = true
	case declcfg.PropertyPackage:
		var required property.Package
		if err := decode(row, &required); err != nil {
			return err
		}
		if required.PackageName == "" && !compat {
			dropped("a dependency of type olm.package names no package: " + fault.Quote(row.value))
			return nil
		}
		w.value(declcfg.PropertyPackageRequired,
			property.PackageRequired{PackageName: required.PackageName, VersionRange: required.Version})
	case declcfg.PropertyConstraint, declcfg.PropertyLabel:
		if compat {
			dropped("opm drops dependencies of type " + row.typ)
			return nil
		}
		return w.raw(row)
	default:
		dropped("a dependency of unknown type " + fault.Quote(row.typ))
	}
	return nil
}

func decode(row propertyRow, into any) error {
	if err := json.Unmarshal([]byte(row.value), into); err != nil {
		return fmt.Errorf("%w: value of type %s: %w", ErrInvalid, fault.Quote(row.typ), shorten(err))
	}
	return nil
}

// propertyWriter collects the properties of one bundle.
type propertyWriter struct {
	provided, required map[gvk]bool
	out                []declcfg.Property
	err                error
}

func (w *propertyWriter) value(typ string, value any) {
	p, err := declcfg.NewProperty(typ, value)
	if err != nil && w.err == nil {
		w.err = err
	}
	w.out = append(w.out, p)
}

// raw adds a value of the database, without white space between its tokens.
func (w *propertyWriter) raw(row propertyRow) error {
	value := jsontext.Value(row.value)
	if row.typ == "" || !value.IsValid() {
		return fmt.Errorf("%w: property of type %s: its value is not valid JSON: %s", ErrInvalid, fault.Quote(row.typ),
			fault.Quote(row.value))
	}
	if err := value.Compact(); err != nil {
		return fmt.Errorf("%w: property of type %s: %w", ErrInvalid, fault.Quote(row.typ), shorten(err))
	}
	w.out = append(w.out, declcfg.Property{Type: row.typ, Value: []byte(value)})
	return nil
}

// imagesOf returns the related images of a bundle: those in its ClusterServiceVersion and those that only the database
// has, sorted by image.
func imagesOf(b *bundle, c Compat) []declcfg.RelatedImage {
	var out []declcfg.RelatedImage
	seen := map[string]bool{}
	if m := b.manifests; m != nil && m.csv != nil && (m.csvAt >= 0 || c != CompatOPM) {
		for _, image := range m.csv.relatedImages {
			out = append(out, image)
			seen[image.Image] = true
		}
	}
	for _, image := range b.images {
		if !seen[image] {
			out = append(out, declcfg.RelatedImage{Image: image})
			seen[image] = true
		}
	}
	sort.SliceStable(out, func(i, j int) bool { return out[i].Image < out[j].Image })
	return out
}
