package bundlecheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/bundlefs"
)

// dependencies checks the entries of dependencies.yaml.
func (r *run) dependencies() {
	file, total := r.metadataWith("dependencies"), maxRules
	var list []bundle.Dependency
	// Anything but a list of dependencies was reported when the bundle was read, and left out.
	if json.Unmarshal(r.top(file)["dependencies"], &list) != nil {
		list = r.b.Dependencies
	}
	for i, d := range list {
		here := []any{"dependencies", i, "value"}
		r.dependency(d, &total, r.declarationFails(place{File: file, Path: here}, d.Value))
	}
}

// dependency checks one entry. left is how many bytes of rules may still be compiled.
func (r *run) dependency(d bundle.Dependency, left *int, fail failFunc) {
	const rule = "dependency-invalid"
	switch {
	case d.Type == "":
		fail(rule, nil, "type must be set")
		return
	case len(d.Value) == 0:
		fail(rule, nil, "value must be set: the dependency is of type %q", d.Type)
		return
	}
	decode := func(into any) bool {
		if err := json.Unmarshal(d.Value, into); err != nil {
			fail(rule, nil, "couldn't parse dependency of type %s: %w", d.Type, err)
			return false
		}
		return true
	}
	switch d.Type {
	case declcfg.PropertyGVK:
		var v property.GVK
		if decode(&v) {
			for _, text := range missingGVK(v.Group, v.Version, v.Kind) {
				fail(rule, nil, "%s", text)
			}
		}
	case declcfg.PropertyPackage:
		var v property.Package
		if !decode(&v) {
			return
		}
		if v.PackageName == "" {
			fail(rule, nil, "Package name is empty")
		}
		if text := bundle.RangeProblem(v.Version); text != "" {
			fail(rule, []any{"version"}, "%s", text)
		}
	case declcfg.PropertyLabel:
		var v struct{ Label string }
		if decode(&v) && v.Label == "" {
			fail(rule, nil, "Label information is missing")
		}
	case declcfg.PropertyConstraint:
		c := constraintChecker{left: *left, guard: r.guard, fail: func(path []any, format string, args ...any) {
			fail("constraint-invalid", path, format, args...)
		}}
		c.check(d.Value)
		*left = c.left
	default:
		fail("dependency-type", nil, "couldn't parse dependency of type %s", d.Type)
	}
}

// failFunc reports an error of a value below the one that is checked.
type failFunc func(rule string, below []any, format string, args ...any)

// declarationFails returns the function that reports errors of the value at a place. The formatted text is opm's
// wording. If the error wraps one of decoding JSON, the finding has a text for people instead, and the path of the
// wrong value.
func (r *run) declarationFails(p place, value []byte) failFunc {
	return func(rule string, below []any, format string, args ...any) {
		err := fmt.Errorf(format, args...)
		f := finding{Problem: bundle.Problem{Severity: bundle.SeverityError, Rule: rule, Message: err.Error()},
			opm: err.Error(), place: p}
		if inner := errors.Unwrap(err); inner != nil {
			if path, text := bundlefs.TypeProblem(value, inner); text != inner.Error() {
				below, f.Message = slices.Concat(below, path), text
			}
		}
		f.place.Path = slices.Concat(p.Path, below)
		r.addFinding(f)
	}
}

// properties checks the declared properties that no reading of the bundle does; other types belong to their authors.
func (r *run) properties() {
	left := maxRules
	for _, d := range r.b.Declared() {
		if d.Rule == bundle.RuleProperty && (d.Type == declcfg.PropertyConstraint || d.Type == declcfg.PropertyLabel) {
			r.dependency(bundle.Dependency{Type: d.Type, Value: d.Value}, &left,
				r.declarationFails(place{File: d.File, Line: d.Line, Path: d.Path}, d.Value))
		}
	}
}

// metadataWith returns the first metadata file with a key at its top level; empty if there is none.
func (r *run) metadataWith(key string) string {
	for _, e := range r.list(r.b.MetadataDir) {
		if e.IsDir() {
			continue
		}
		name := path.Join(r.b.MetadataDir, e.Name())
		if _, ok := r.top(name)[key]; ok {
			return name
		}
	}
	return ""
}

// top returns the members of a file's first document, if that is an object.
func (r *run) top(name string) map[string]json.RawMessage {
	data, err := bundlefs.ReadFile(r.fsys, name)
	if err != nil {
		return nil
	}
	doc, err := bundlefs.FirstDocument(data)
	if err != nil {
		return nil
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(doc, &top); err != nil {
		return nil
	}
	return top
}
