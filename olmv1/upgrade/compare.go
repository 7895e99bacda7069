package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Report is what changes. Its JSON form is stable.
type Report struct {
	// Same is true if nothing changes, except names of roles.
	Same bool `json:"same"`
	// Permissions has the accounts whose permissions change, sorted.
	Permissions []Account `json:"permissions"`
	// Definitions has the CustomResourceDefinitions that change, by name.
	Definitions []DefinitionChange `json:"definitions"`
	// Added, Removed and Changed are the objects in the order of their manifests. Roles and bindings that only have
	// another name are in Renamed.
	Added   []Object       `json:"added"`
	Removed []Object       `json:"removed"`
	Changed []objectChange `json:"changed"`
	Renamed []rename       `json:"renamed"`
}

// Object names an object.
type Object struct {
	Group     string `json:"group,omitempty"`
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String returns KIND NAMESPACE/NAME.
func (o Object) String() string {
	if o.Namespace == "" {
		return o.Kind + " " + o.Name
	}
	return o.Kind + " " + o.Namespace + "/" + o.Name
}

// Manifest is an object with its JSON.
type Manifest struct {
	Object
	JSON []byte
}

// rename is a role or binding under another name.
type rename struct {
	Old Object `json:"old"`
	New Object `json:"new"`
}

// objectChange is an object with other fields.
type objectChange struct {
	Object
	Fields []fieldChange `json:"fields"`
}

// fieldChange is a field with another value. A value that is absent is nil.
type fieldChange struct {
	// Path has the names of fields, joined by dots, and in brackets the name or index of an item.
	Path string          `json:"path"`
	Old  json.RawMessage `json:"old,omitempty"`
	New  json.RawMessage `json:"new,omitempty"`
}

// String returns PATH: OLD -> NEW, with long values shortened.
func (f fieldChange) String() string { return f.Path + ": " + short(f.Old) + " -> " + short(f.New) }

// item is a decoded object.
type item struct {
	Object
	content map[string]any
	text    []byte
}

// set is the objects of one side by their name; a later one of the same name replaces an earlier one.
type set struct {
	items map[Object]item
	order []Object
}

func newSet(objects []Manifest) (*set, error) {
	s := &set{items: map[Object]item{}}
	for _, o := range objects {
		key := o.Object
		content, err := decode(o)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o, err)
		}
		if _, ok := s.items[key]; !ok {
			s.order = append(s.order, key)
		}
		s.items[key] = item{key, content, o.JSON}
	}
	return s, nil
}

// Compare compares two lists of manifests. judge may be nil: then nothing is said about refusals. The error is about an
// object, of the class of limits, or that of the context.
func Compare(ctx context.Context, from, to []Manifest, judge Judge) (*Report, error) {
	before, err := newSet(from)
	if err != nil {
		return nil, err
	}
	after, err := newSet(to)
	if err != nil {
		return nil, err
	}
	permissions, err := comparePermissions(before, after)
	if err != nil {
		return nil, err
	}
	r := &Report{Permissions: permissions, Definitions: []DefinitionChange{}, Added: []Object{},
		Removed: []Object{}, Changed: []objectChange{}, Renamed: []rename{}}
	definitions := map[string]*DefinitionChange{}
	for _, key := range before.order {
		if _, ok := after.items[key]; !ok {
			r.Removed = append(r.Removed, key)
		}
	}
	for _, key := range after.order {
		old, ok := before.items[key]
		if !ok {
			r.Added = append(r.Added, key)
			continue
		}
		refused, err := judge.verdict(ctx, old, after.items[key])
		if err != nil {
			return nil, err
		}
		d, err := r.changed(old, after.items[key], refused)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if d != nil {
			definitions[d.Name] = d
		}
	}
	for _, name := range slices.Sorted(maps.Keys(definitions)) {
		r.Definitions = append(r.Definitions, *definitions[name])
	}
	r.pairRenamed(before, after)
	r.Same = len(r.Permissions)+len(r.Definitions)+len(r.Added)+len(r.Removed)+len(r.Changed) == 0
	return r, nil
}

// changed adds what differs in an object, and returns what differs in a definition. refused is what OLM v1 says of that. The
// rules of roles are compared with the permissions.
func (r *Report) changed(from, to item, refused verdict) (definition *DefinitionChange, err error) {
	before, after := from.content, to.content
	if isDefinition(to.Object) {
		if definition, err = compareDefinition(from, to, refused); err != nil {
			return nil, err
		}
		before, after = withoutVersions(before), withoutVersions(after)
	}
	if isRole(to.Object) {
		before, after = omit(before, "rules"), omit(after, "rules")
	}
	if fields := compareFields(nil, "", before, after); len(fields) > 0 {
		r.Changed = append(r.Changed, objectChange{to.Object, fields})
	}
	return definition, nil
}

// withoutVersions returns a definition without spec.versions.
func withoutVersions(content map[string]any) map[string]any {
	spec, ok := content["spec"].(map[string]any)
	if !ok {
		return content
	}
	out := maps.Clone(content)
	out["spec"] = omit(spec, "versions")
	return out
}

func omit(m map[string]any, names ...string) map[string]any {
	out := maps.Clone(m)
	for _, name := range names {
		delete(out, name)
	}
	return out
}
