package sqlite

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/fault"
)

// properties writes the provided and required APIs of a bundle and its other properties, after its manifests.
//
// A constraint is written as a property, as in a file-based catalog, not as a dependency, as opm does when it adds a
// bundle: opm drops constraints among the dependencies when it reads them, and OLM accepts both.
func (p *packageWriter) properties(ctx context.Context, b *declcfg.Bundle, version string, c *columns) error {
	w := rowWriter{packageWriter: p, ctx: ctx, bundle: b, version: version, csv: c.parsed.csv,
		plurals: c.document.plurals(), seen: map[propertyRow]bool{}}
	for _, property := range b.Properties {
		if err := w.property(property); err != nil {
			return err
		}
	}
	return nil
}

// rowWriter writes rows that belong to one bundle by its name, version and image.
type rowWriter struct {
	*packageWriter
	ctx     context.Context
	bundle  *declcfg.Bundle
	version string
	csv     *csv
	plurals map[gvk]string
	seen    map[propertyRow]bool
}

func (w *rowWriter) property(p declcfg.Property) error {
	if p.Type == declcfg.PropertyBundleObject {
		return nil
	}
	if err := checkText("the type of a property", p.Type); err != nil {
		return err
	}
	value := string(p.Value)
	if !jsontext.Value(value).IsValid() || p.Type == "" {
		return fmt.Errorf("%w: property of type %s: its value is not valid JSON: %s", ErrInvalid, fault.Quote(p.Type),
			fault.Quote(value))
	}
	if w.seen[propertyRow{p.Type, value}] {
		w.changed(Finding{Bundle: w.bundle.Name, Field: p.Type,
			Reason: "a property that is there twice is in the database once"})
		return nil
	}
	w.seen[propertyRow{p.Type, value}] = true
	// Small values repeat, and a reader holds each only once.
	const small = 256
	if len(value) > small {
		if w.text += int64(len(value)); w.text > w.options.Limits.TextBytes {
			return fmt.Errorf("%w: more than %d bytes of properties", ErrLimit, w.options.Limits.TextBytes)
		}
	}
	switch p.Type {
	case declcfg.PropertyGVK, declcfg.PropertyGVKRequired:
		return w.api(propertyRow{p.Type, value})
	case declcfg.PropertyPackageRequired:
		return w.packageRequired(propertyRow{p.Type, value})
	}
	return w.row(insertProperty, p.Type, value)
}

// row writes a row of a table whose last columns are the bundle's name, version and image.
func (w *rowWriter) row(statement string, values ...any) error {
	return w.run(w.ctx, statement, append(values, w.bundle.Name, w.version, w.bundle.Image)...)
}

// api writes an API that the bundle provides or requires.
func (w *rowWriter) api(p propertyRow) error {
	var v property.GVK
	if err := decode(p, &v); err != nil {
		return err
	}
	w.reportMore(p, "group", "kind", "version")
	if p.typ == declcfg.PropertyGVKRequired && v.Kind == "" {
		w.lost(Finding{Bundle: w.bundle.Name, Field: p.typ,
			Reason: "the property names no kind: " + fault.Quote(p.value)})
		return nil
	}
	canonical, err := declcfg.NewProperty(declcfg.PropertyGVK, v)
	if err != nil {
		return err
	}
	for _, s := range []string{v.Group, v.Version, v.Kind} {
		if err := checkText("an API", s); err != nil {
			return err
		}
	}
	key := gvk{v.Group, v.Version, v.Kind}
	if p.typ == declcfg.PropertyGVK {
		if err := w.row(insertProperty, canonical.Type, string(canonical.Value)); err != nil {
			return err
		}
		return w.apiRow(insertProvider, key)
	}
	if err := w.row(insertDependency, canonical.Type, string(canonical.Value)); err != nil {
		return err
	}
	// Dependencies come from two files of a bundle, but the table of required APIs only from the ClusterServiceVersion.
	if w.csv != nil && !w.csv.stub && !slices.Contains(w.csv.required, key) {
		return nil
	}
	return w.apiRow(insertRequirer, key)
}

func (w *rowWriter) apiRow(statement string, key gvk) error {
	if err := w.run(w.ctx, insertAPI, key.group, key.version, key.kind, w.plurals[key]); err != nil {
		return err
	}
	return w.row(statement, key.group, key.version, key.kind)
}

// packageRequired writes a dependency on a package. Its field "version" is a range.
func (w *rowWriter) packageRequired(p propertyRow) error {
	var v property.PackageRequired
	if err := decode(p, &v); err != nil {
		return err
	}
	w.reportMore(p, "packageName", "versionRange")
	if v.PackageName == "" {
		w.lost(Finding{Bundle: w.bundle.Name, Field: p.typ,
			Reason: "the property names no package: " + fault.Quote(p.value)})
		return nil
	}
	canonical, err := declcfg.NewProperty(declcfg.PropertyPackage,
		property.Package{PackageName: v.PackageName, Version: v.VersionRange})
	if err != nil {
		return err
	}
	return w.row(insertDependency, canonical.Type, string(canonical.Value))
}

// reportMore reports fields of a value that its type does not define.
func (w *rowWriter) reportMore(p propertyRow, known ...string) {
	var fields map[string]jsontext.Value
	if json.Unmarshal([]byte(p.value), &fields) != nil {
		return
	}
	for _, name := range known {
		delete(fields, name)
	}
	if len(fields) > 0 {
		w.lost(Finding{Bundle: w.bundle.Name, Field: p.typ,
			Reason: "the value has more fields than the type: " + strings.Join(sortedKeys(fields), ", ")})
	}
}

// plurals returns the plural names of the APIs in a ClusterServiceVersion; d may be nil.
func (d *csvDocument) plurals() map[gvk]string {
	plurals := map[gvk]string{}
	if d == nil {
		return plurals
	}
	crds := append(d.Spec.CRDs.Owned, d.Spec.CRDs.Required...)
	for i, api := range crdAPIs(crds) {
		plurals[api], _, _ = strings.Cut(crds[i].Name, ".")
	}
	services := append(d.Spec.APIServices.Owned, d.Spec.APIServices.Required...)
	for i, api := range serviceAPIs(services) {
		plurals[api] = services[i].Name
	}
	return plurals
}
