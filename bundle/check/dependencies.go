package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"path"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/canon"
)

// The types of dependencies and the properties that mean the same.
const (
	typeGVK        = "olm.gvk"
	typePackage    = "olm.package"
	typeLabel      = "olm.label"
	typeConstraint = "olm.constraint"
)

// dependencies checks the entries of dependencies.yaml.
func (r *run) dependencies() {
	file, total := r.metadataWith("dependencies"), maxRules
	for i, d := range r.b.Dependencies {
		here := []any{"dependencies", i, "value"}
		r.dependency(d, &total, func(rule string, below []any, format string, args ...any) {
			p := inFile(file)
			p.path = slices.Concat(here, below)
			r.fail(rule, p, format, args...)
		})
	}
}

// dependency checks one entry. left is how many bytes of rules may still be compiled.
func (r *run) dependency(d bundle.Dependency, left *int, fail func(rule string, below []any, format string, args ...any)) {
	const rule = "dependency-invalid"
	decode := func(into any) bool {
		if err := json.Unmarshal(d.Value, into); err != nil {
			fail(rule, nil, "couldn't parse dependency of type %s: %v", d.Type, err)
			return false
		}
		return true
	}
	switch d.Type {
	case typeGVK:
		var v struct{ Group, Version, Kind string }
		if decode(&v) {
			for _, text := range missingGVK(v.Group, v.Version, v.Kind) {
				fail(rule, nil, "%s", text)
			}
		}
	case typePackage:
		var v struct{ PackageName, Version string }
		if !decode(&v) {
			return
		}
		if v.PackageName == "" {
			fail(rule, nil, "Package name is empty")
		}
		if text := badRange(v.Version); text != "" {
			fail(rule, []any{"version"}, "%s", text)
		}
	case typeLabel:
		var v struct{ Label string }
		if decode(&v) && v.Label == "" {
			fail(rule, nil, "Label information is missing")
		}
	case typeConstraint:
		c := constraintChecker{left: *left, stop: r.ctx.Err, fail: func(path []any, format string, args ...any) {
			fail("constraint-invalid", path, format, args...)
		}}
		c.check(d.Value)
		*left = c.left
	default:
		fail("dependency-type", nil, "couldn't parse dependency of type %s", d.Type)
	}
}

// properties checks what properties.yaml requires of others; the values of other types are their authors' business.
func (r *run) properties() {
	file, left := r.metadataWith("properties"), maxRules
	for i, p := range r.b.Properties {
		if p.Type != typeConstraint {
			continue
		}
		here := []any{"properties", i, "value"}
		r.dependency(bundle.Dependency{Type: p.Type, Value: p.Value}, &left, func(rule string, below []any, format string, args ...any) {
			p := inFile(file)
			p.path = slices.Concat(here, below)
			r.fail(rule, p, format, args...)
		})
	}
}

// metadataWith is the first file of the metadata with a key at its top, empty if there is none.
func (r *run) metadataWith(key string) string {
	for _, e := range r.list(r.b.MetadataDir) {
		if !e.Type().IsRegular() {
			continue
		}
		name := path.Join(r.b.MetadataDir, e.Name())
		if _, ok := r.top(name)[key]; ok {
			return name
		}
	}
	return ""
}

// top is the first document of a file, if that is an object: the members by their keys.
func (r *run) top(name string) map[string]json.RawMessage {
	data, err := readFile(r.fsys, name)
	if err != nil {
		return nil
	}
	doc, err := canon.NewSplitter(bytes.NewReader(data), canon.Limits{}).Next()
	if err != nil {
		return nil
	}
	c := canon.Converter{}
	text, err := c.Append(nil, doc)
	if err != nil {
		return nil
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(text, &top); err != nil {
		return nil
	}
	return top
}

var errNoAnnotations = errors.New("no annotations")

// annotationsOf are the annotations of a file of the metadata.
func (r *run) annotationsOf(name string) (map[string]string, error) {
	raw, ok := r.top(name)["annotations"]
	if !ok {
		return nil, errNoAnnotations
	}
	var out map[string]string
	return out, json.Unmarshal(raw, &out)
}
