package upgrade

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
)

// DefinitionChange is what changes in a CustomResourceDefinition.
type DefinitionChange struct {
	Name string `json:"name"`
	// Added and Removed are versions.
	Added   []string `json:"versionsAdded"`
	Removed []string `json:"versionsRemoved"`
	// Versions are those that both have and that differ.
	Versions []VersionChange `json:"versions"`
	// Refusals are the changes for which OLM v1 refuses the upgrade, of the definition, of its versions, and between
	// its served versions.
	Refusals []RefusedChange `json:"refusals"`
	// NotJudged says why it is not known whether OLM v1 refuses the upgrade.
	NotJudged string `json:"notJudged,omitempty"`
}

// VersionChange is what changes in a version of a CustomResourceDefinition. Fields are paths in the schema: names
// joined by dots, with "[]" for the items of a list and "{}" for the values of a map.
type VersionChange struct {
	Name string `json:"name"`
	// Notes are about served, storage and deprecated.
	Notes []string `json:"notes"`
	// Added, Removed, Retyped and Required are fields: the last ones are required now, and were not.
	Added    []string `json:"fieldsAdded"`
	Removed  []string `json:"fieldsRemoved"`
	Retyped  []string `json:"fieldsOfOtherType"`
	Required []string `json:"fieldsRequired"`
	// Details are the other differences of the version and of its schema.
	Details []detail `json:"details"`
}

// detail is an attribute with another value. A value that is absent is nil.
type detail struct {
	// Field is the field of the schema that has the attribute, "^" for the schema as a whole, and empty for the
	// version.
	Field string `json:"field,omitempty"`
	// Attribute is the name of the attribute, with the path in it.
	Attribute string          `json:"attribute"`
	Old       json.RawMessage `json:"old,omitempty"`
	New       json.RawMessage `json:"new,omitempty"`
	// Refused is set if OLM v1 refuses the upgrade for it.
	Refused bool `json:"refused,omitempty"`
}

func isDefinition(o Object) bool {
	return o.Group == "apiextensions.k8s.io" && o.Kind == "CustomResourceDefinition"
}

// compareDefinition returns what differs in the versions of two definitions; nil if nothing does.
func compareDefinition(from, to item, refused verdict) (*DefinitionChange, error) {
	before, after := versionsOf(from), versionsOf(to)
	d := DefinitionChange{Name: to.Name, Added: onlyIn(after, before), Removed: onlyIn(before, after),
		Versions: []VersionChange{},
		Refusals: append([]RefusedChange{}, refused.changes...), NotJudged: refused.unknown}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if old, ok := before[name]; ok {
			v, differs, err := compareVersion(name, old, after[name])
			if err != nil {
				return nil, err
			}
			if differs {
				v.markRefused(d.Refusals)
				d.Versions = append(d.Versions, v)
			}
		}
	}
	if len(d.Added)+len(d.Removed)+len(d.Versions)+len(d.Refusals) == 0 {
		return nil, nil
	}
	return &d, nil
}

// versionsOf returns the versions of a definition by name.
func versionsOf(i item) map[string]map[string]any {
	out := map[string]map[string]any{}
	spec, _ := i.content["spec"].(map[string]any)
	list, _ := spec["versions"].([]any)
	for _, v := range list {
		version, _ := v.(map[string]any)
		name, _ := version["name"].(string)
		out[name] = version
	}
	return out
}

// onlyIn returns the keys of a map that another one lacks, sorted.
func onlyIn[V any](m, other map[string]V) []string {
	out := []string{}
	for k := range m {
		if _, ok := other[k]; !ok {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

func compareVersion(name string, from, to map[string]any) (VersionChange, bool, error) {
	v := VersionChange{Name: name, Notes: []string{}}
	for _, what := range []string{"served", "storage", "deprecated"} {
		x, _ := from[what].(bool)
		y, _ := to[what].(bool)
		switch {
		case y && !x:
			v.Notes = append(v.Notes, "now "+what)
		case x && !y:
			v.Notes = append(v.Notes, "no longer "+what)
		}
	}
	x, y, err := schemasOf(from, to)
	if err != nil {
		return v, false, err
	}
	before, after := outlineOf(x), outlineOf(y)
	v.Added, v.Removed = onlyIn(after.fields, before.fields), onlyIn(before.fields, after.fields)
	v.Retyped, v.Required, v.Details = []string{}, []string{}, []detail{}
	for _, path := range slices.Sorted(maps.Keys(after.fields)) {
		old, both := before.fields[path]
		if both && old.kind != after.fields[path].kind {
			v.Retyped = append(v.Retyped, path)
		}
		if after.fields[path].required && !old.required {
			v.Required = append(v.Required, path)
		}
		if both && old.required && !after.fields[path].required {
			v.Details = append(v.Details, detail{Field: path, Attribute: "required", Old: text(true), New: text(false)})
		}
	}
	v.details("", omit(from, "schema", "served", "storage", "deprecated"),
		omit(to, "schema", "served", "storage", "deprecated"))
	for _, path := range slices.Sorted(maps.Keys(after.schemas)) {
		if old, ok := before.schemas[path]; ok {
			v.details(path, old, after.schemas[path])
		}
	}
	return v, len(v.Notes)+len(v.Added)+len(v.Removed)+len(v.Retyped)+len(v.Required)+len(v.Details) > 0, nil
}

// details adds the attributes that differ.
func (v *VersionChange) details(field string, from, to map[string]any) {
	for _, f := range compareFields(nil, "", from, to) {
		v.Details = append(v.Details, detail{Field: field, Attribute: f.Path, Old: f.Old, New: f.New})
	}
}

// outlined is a version's schema by the paths of fields: those that have a name, and every schema, "^" the outermost,
// without what is compared in another way.
type outlined struct {
	fields  map[string]field
	schemas map[string]map[string]any
}

// field is a field of a schema.
type field struct {
	kind     string
	required bool
}

func outlineOf(root map[string]any) outlined {
	out := outlined{map[string]field{}, map[string]map[string]any{}}
	out.add("", root, false)
	return out
}

// add adds a schema. named is true if it is that of a field, whose type is compared with the field.
func (o *outlined) add(path string, schema map[string]any, named bool) {
	required := stringsOf(schema["required"])
	must := map[string]bool{}
	for _, name := range required {
		must[name] = true
	}
	properties, _ := schema["properties"].(map[string]any)
	rest := omit(schema, "properties")
	if named {
		delete(rest, "type")
	}
	for name, v := range properties {
		inner, _ := v.(map[string]any)
		kind, _ := inner["type"].(string)
		at := fieldOf(path, name)
		o.fields[at] = field{kind, must[name]}
		o.add(at, inner, true)
	}
	for name, suffix := range map[string]string{"items": "[]", "additionalProperties": "{}"} {
		if inner, ok := schema[name].(map[string]any); ok {
			rest[name] = map[string]any{}
			o.add(path+suffix, inner, false)
		}
	}
	// Fields that are required now are compared with the fields: what is left are those that are not any more.
	delete(rest, "required")
	if extra := slices.DeleteFunc(required, func(name string) bool { _, ok := properties[name]; return ok }); len(extra) > 0 {
		rest["required"] = extra
	}
	path = cmp.Or(path, "^")
	o.schemas[path] = rest
}
