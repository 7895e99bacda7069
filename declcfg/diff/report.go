package diff

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Change is the kind of a difference.
type Change string

// The changes.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
)

// Section is a part of the comparison.
type Section string

// The sections.
const (
	Packages     Section = "packages"     // which packages there are, their default channels, descriptions and icons
	Channels     Section = "channels"     // which channels there are
	Heads        Section = "heads"        // the heads of channels that are on both sides
	Edges        Section = "edges"        // entries of channels: replaces, skips, skipRange
	Bundles      Section = "bundles"      // which bundles there are
	Images       Section = "images"       // images of bundles, and the images that they need
	Properties   Section = "properties"   // properties of packages, channels and bundles
	Deprecations Section = "deprecations" // deprecations
	Others       Section = "others"       // blobs of other schemas, and fields that no schema knows
)

// Sections returns all sections.
func Sections() []Section {
	return []Section{Packages, Channels, Heads, Edges, Bundles, Images, Properties, Deprecations, Others}
}

// ParseSection returns the section of that name.
func ParseSection(name string) (Section, error) {
	if s := Section(name); slices.Contains(Sections(), s) {
		return s, nil
	}
	return "", fmt.Errorf("unknown section %q", name)
}

// Report has the differences between an old catalog and a new one, sorted by name. Its JSON form is stable: fields may
// be added, and none will change.
type Report struct {
	Same     bool          `json:"same"`
	Old      Counts        `json:"old"`
	New      Counts        `json:"new"`
	Packages []PackageDiff `json:"packages"`
	Images   ImageDiff     `json:"images"`
	Others   []BlobDiff    `json:"others,omitempty"` // of no package
}

// Counts are the sizes of a catalog. Images are those of bundles and those that bundles need, each once.
type Counts struct {
	Packages int `json:"packages"`
	Channels int `json:"channels"`
	Bundles  int `json:"bundles"`
	Images   int `json:"images"`
}

// PackageDiff is a package that differs. Everything in a package that was added or removed is so too.
type PackageDiff struct {
	Name         string            `json:"name"`
	Change       Change            `json:"change"`
	Fields       []FieldDiff       `json:"fields,omitempty"` // defaultChannel, description, icon
	Properties   []PropertyDiff    `json:"properties,omitempty"`
	Channels     []ChannelDiff     `json:"channels,omitempty"`
	Bundles      []BundleDiff      `json:"bundles,omitempty"`
	Deprecations []DeprecationDiff `json:"deprecations,omitempty"`
	Others       []BlobDiff        `json:"others,omitempty"`
}

// FieldDiff is a value that differs. A value that is not there is empty.
type FieldDiff struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// ChannelDiff is a channel that differs. The field "head" has the names of all heads, separated by commas, where there is
// not exactly one.
type ChannelDiff struct {
	Name       string         `json:"name"`
	Change     Change         `json:"change"`
	Fields     []FieldDiff    `json:"fields,omitempty"` // head
	Properties []PropertyDiff `json:"properties,omitempty"`
	Entries    []EntryDiff    `json:"entries,omitempty"`
}

// EntryDiff is an entry of a channel that differs, with the edges that lead to it. Old is nil where it was added, New where
// it was removed.
type EntryDiff struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	Old    *Edge  `json:"old,omitempty"`
	New    *Edge  `json:"new,omitempty"`
}

// Edge are the upgrade edges of an entry. Skips are sorted, without duplicates.
type Edge struct {
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// BundleDiff is a bundle that differs. Version is the new one, or that of a bundle that was removed.
type BundleDiff struct {
	Name          string         `json:"name"`
	Change        Change         `json:"change"`
	Version       string         `json:"version,omitempty"`
	Fields        []FieldDiff    `json:"fields,omitempty"` // image
	Properties    []PropertyDiff `json:"properties,omitempty"`
	RelatedImages []ImageChange  `json:"relatedImages,omitempty"`
}

// ImageChange is a related image that a bundle has gained or lost.
type ImageChange struct {
	Name   string `json:"name,omitempty"`
	Image  string `json:"image"`
	Change Change `json:"change"`
}

// PropertyDiff is a property that differs. Old and New are its values; a value of more than 512 bytes is an object of
// "digest" and "size" in place of itself.
type PropertyDiff struct {
	Type   string          `json:"type"`
	Change Change          `json:"change"`
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
}

// DeprecationDiff is a deprecation that differs. Schema and Name are what is deprecated; Old and New are the messages.
type DeprecationDiff struct {
	Schema string `json:"schema"`
	Name   string `json:"name,omitempty"`
	Change Change `json:"change"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

// BlobDiff is a blob of an unknown schema, or a field of a blob (Schema, Name) that its schema does not define.
type BlobDiff struct {
	Schema string `json:"schema"`
	Name   string `json:"name,omitempty"`
	Field  string `json:"field,omitempty"`
	Change Change `json:"change"`
}

// ImageDiff are the images that one catalog needs and the other does not, over all bundles.
type ImageDiff struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
}
