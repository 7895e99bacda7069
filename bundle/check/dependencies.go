package check

import (
	"encoding/json"
	"path"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
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
		r.dependency(d, &total, func(rule string, below []any, format string, args ...any) {
			p := inFile(file)
			p.path = slices.Concat(here, below)
			r.fail(rule, p, format, args...)
		})
	}
}

// dependency checks one entry. left is how many bytes of rules may still be compiled.
func (r *run) dependency(d bundle.Dependency, left *int,
	fail func(rule string, below []any, format string, args ...any)) {
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
			fail(rule, nil, "couldn't parse dependency of type %s: %v", d.Type, err)
			return false
		}
		return true
	}
	switch d.Type {
	case declcfg.PropertyGVK:
		var v struct{ Group, Version, Kind string }
		if decode(&v) {
			for _, text := range missingGVK(v.Group, v.Version, v.Kind) {
				fail(rule, nil, "%s", text)
			}
		}
	case declcfg.PropertyPackage:
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

// properties checks those values in properties.yaml that OLM defines; other types belong to their authors.
func (r *run) properties() {
	file, left := r.metadataWith("properties"), maxRules
	for i, p := range r.b.Properties {
		if p.Type != declcfg.PropertyConstraint {
			continue
		}
		here := []any{"properties", i, "value"}
		r.dependency(bundle.Dependency{Type: p.Type, Value: p.Value}, &left,
			func(rule string, below []any, format string, args ...any) {
				p := inFile(file)
				p.path = slices.Concat(here, below)
				r.fail(rule, p, format, args...)
			})
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
