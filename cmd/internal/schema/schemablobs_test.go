package schema_test

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/internal/testing/schemagen"
)

// blobText describes the schemas of the blobs of catalogs.
const blobText = "A document of a file-based catalog. The program keeps members that are not listed, with a warning: " +
	"they are usually misspelled, and the schema refuses them."

type packageForm struct {
	Schema         string `json:"schema" enum:"olm.package"`
	Name           string `json:"name"`
	DefaultChannel string `json:"defaultChannel"`
	Icon           *struct {
		// The picture.
		Data []byte `json:"base64data"`
		// Its type, such as image/svg+xml.
		MediaType string `json:"mediatype"`
	} `json:"icon,omitempty"`
	// Markdown.
	Description string         `json:"description,omitempty"`
	Properties  []propertyForm `json:"properties,omitempty"`
}

type channelForm struct {
	Schema string `json:"schema" enum:"olm.channel"`
	Name   string `json:"name"`
	// Name of the package that the channel is in.
	Package string `json:"package"`
	Entries []struct {
		// Name of a bundle of the package.
		Name string `json:"name"`
		// Name of the bundle that is upgraded to this one.
		Replaces string `json:"replaces,omitempty"`
		// Names of bundles that are left out on the way, and upgraded to this one.
		Skips []string `json:"skips,omitempty"`
		// Range of versions that are upgraded to this one, such as >=1.0.0 <1.2.0.
		SkipRange string `json:"skipRange,omitempty"`
	} `json:"entries"`
	Properties []propertyForm `json:"properties,omitempty"`
}

type bundleForm struct {
	Schema string `json:"schema" enum:"olm.bundle"`
	Name   string `json:"name"`
	// Name of the package that the bundle is in.
	Package string `json:"package"`
	// Name of the bundle's image.
	Image string `json:"image,omitempty"`
	// One of them is of the type olm.package, with packageName and version.
	Properties []propertyForm `json:"properties"`
	// Images that the operator needs at run time.
	RelatedImages []struct {
		Name  string `json:"name,omitempty"`
		Image string `json:"image"`
	} `json:"relatedImages,omitempty"`
}

type deprecationsForm struct {
	Schema string `json:"schema" enum:"olm.deprecations"`
	// Name of the package whose parts are deprecated.
	Package string `json:"package"`
	Entries []struct {
		// What is deprecated. The package itself has no name.
		Reference struct {
			Schema string `json:"schema" enum:"olm.package|olm.channel|olm.bundle"`
			Name   string `json:"name,omitempty"`
		} `json:"reference"`
		// What users are to know.
		Message string `json:"message"`
	} `json:"entries"`
}

type propertyForm struct {
	// Type of the property, such as olm.gvk.
	Type string `json:"type"`
	// Value whose form the type defines.
	Value json.RawMessage `json:"value"`
}

// catalogForm has the blobs of catalogs as members, of which anyBlob makes a choice.
type catalogForm struct {
	Package      *packageForm      `json:"olm.package"`
	Channel      *channelForm      `json:"olm.channel"`
	Bundle       *bundleForm       `json:"olm.bundle"`
	Deprecations *deprecationsForm `json:"olm.deprecations"`
}

// anyBlob replaces the members of a catalogForm by a choice among them, which the schema of a blob decides.
func anyBlob(o schemagen.Object) {
	choices := []any{}
	members := o["properties"].(schemagen.Object)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		choices = append(choices, schemagen.Object{"if": ofSchema(name), "then": ofPointer(members[name])})
	}
	delete(o, "additionalProperties")
	o["properties"] = schemagen.Object{"schema": schemagen.Object{"type": "string"}}
	o["required"], o["allOf"] = []string{"schema"}, choices
	needsEntry(o["$defs"].(schemagen.Object)["channelForm"].(schemagen.Object))
	needsEntry(o["$defs"].(schemagen.Object)["deprecationsForm"].(schemagen.Object))
}

// ofPointer returns the reference in the schema of a pointer.
func ofPointer(o any) any {
	if any, ok := o.(schemagen.Object)["anyOf"].([]any); ok {
		return any[0]
	}
	return o
}

func ofSchema(name string) schemagen.Object {
	return schemagen.Object{"required": []string{"schema"},
		"properties": schemagen.Object{"schema": schemagen.Object{"const": name}}}
}

// catalogEntries makes the entries of a template blobs of any schema.
func catalogEntries(o schemagen.Object) {
	member(o, "entries")["items"] = schemagen.Object{"type": "object", "required": []string{"schema"},
		"properties": schemagen.Object{"schema": text}}
}

// basicEntries does so for a template of the type basic, whose bundles have an image and nothing else.
func basicEntries(o schemagen.Object) {
	catalogEntries(o)
	member(o, "entries")["items"].(schemagen.Object)["allOf"] = []any{schemagen.Object{"if": ofSchema("olm.bundle"),
		"then": schemagen.Object{"type": "object", "required": []string{"schema", "image"},
			"additionalProperties": false, "properties": schemagen.Object{"schema": text, "image": text}}}}
}

// needsEntry requires one entry.
func needsEntry(o schemagen.Object) {
	member(o, "entries")["minItems"] = 1
	member(o, "entries")["type"] = "array"
}

// member returns the schema of a member.
func member(o schemagen.Object, name string) schemagen.Object {
	m := o["properties"].(schemagen.Object)[name].(schemagen.Object)
	if any, ok := m["anyOf"].([]any); ok {
		return any[0].(schemagen.Object)
	}
	return m
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }
