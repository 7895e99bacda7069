package upgrade

import (
	"maps"
	"slices"
)

// Definition is what changes in a CustomResourceDefinition.
type Definition struct {
	Name string `json:"name"`
	// Added and Removed are versions.
	Added   []string `json:"versionsAdded"`
	Removed []string `json:"versionsRemoved"`
	// Versions are those that both have and that differ.
	Versions []Version `json:"versions"`
}

// Version is what changes in a version of a CustomResourceDefinition. Fields are paths in the schema: names joined by
// dots, with "[]" for the items of a list and "{}" for the values of a map.
type Version struct {
	Name string `json:"name"`
	// Notes are about served, storage and deprecated.
	Notes []string `json:"notes"`
	// Added, Removed, Retyped and Required are fields: the last ones are required now, and were not.
	Added    []string `json:"fieldsAdded"`
	Removed  []string `json:"fieldsRemoved"`
	Retyped  []string `json:"fieldsOfOtherType"`
	Required []string `json:"fieldsRequired"`
	// Other is true if the schema differs in something else, such as descriptions, limits or defaults.
	Other bool `json:"other"`
}

func isDefinition(o Object) bool {
	return o.Group == "apiextensions.k8s.io" && o.Kind == "CustomResourceDefinition"
}

// compareDefinition returns what differs in the versions of two definitions.
func compareDefinition(from, to item) (Definition, bool) {
	before, after := versionsOf(from), versionsOf(to)
	d := Definition{Name: to.Name, Added: onlyIn(after, before), Removed: onlyIn(before, after), Versions: []Version{}}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if old, ok := before[name]; ok {
			if v, differs := compareVersion(name, old, after[name]); differs {
				d.Versions = append(d.Versions, v)
			}
		}
	}
	return d, len(d.Added)+len(d.Removed)+len(d.Versions) > 0
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

func compareVersion(name string, from, to map[string]any) (Version, bool) {
	v := Version{Name: name, Notes: []string{}}
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
	before, after := outlineOf(from), outlineOf(to)
	v.Added, v.Removed = onlyIn(after, before), onlyIn(before, after)
	v.Retyped, v.Required = []string{}, []string{}
	for _, path := range slices.Sorted(maps.Keys(after)) {
		old, both := before[path]
		if both && old.kind != after[path].kind {
			v.Retyped = append(v.Retyped, path)
		}
		if after[path].required && !old.required {
			v.Required = append(v.Required, path)
		}
	}
	named := len(v.Notes)+len(v.Added)+len(v.Removed)+len(v.Retyped)+len(v.Required) > 0
	v.Other = !named && len(compareFields(nil, "", from, to)) > 0
	return v, named || v.Other
}

// field is a field of a schema.
type field struct {
	kind     string
	required bool
}

// outlineOf returns the fields of a version's schema by path.
func outlineOf(version map[string]any) map[string]field {
	schema, _ := version["schema"].(map[string]any)
	root, _ := schema["openAPIV3Schema"].(map[string]any)
	out := map[string]field{}
	outline(out, "", root)
	return out
}

func outline(out map[string]field, path string, schema map[string]any) {
	required := stringsOf(schema["required"])
	properties, _ := schema["properties"].(map[string]any)
	for name, v := range properties {
		inner, _ := v.(map[string]any)
		kind, _ := inner["type"].(string)
		at := fieldOf(path, name)
		out[at] = field{kind, slices.Contains(required, name)}
		outline(out, at, inner)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		outline(out, path+"[]", items)
	}
	if values, ok := schema["additionalProperties"].(map[string]any); ok {
		outline(out, path+"{}", values)
	}
}
