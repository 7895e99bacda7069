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
	Packages     Section = "packages"     // added and removed packages, their default channels, descriptions and icons
	Channels     Section = "channels"     // added and removed channels
	Heads        Section = "heads"        // heads of channels that exist on both sides
	Edges        Section = "edges"        // entries of channels: replaces, skips, skipRange
	Bundles      Section = "bundles"      // added and removed bundles
	Images       Section = "images"       // images of bundles, and their related images
	Properties   Section = "properties"   // properties of packages, channels and bundles
	Deprecations Section = "deprecations" // deprecations
	Others       Section = "others"       // blobs of other schemas, and unknown fields
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

// Report lists the differences between an old and a new catalog, sorted by name. Its JSON form is stable: fields may be
// added, and none will change.
type Report struct {
	Same     bool          `json:"same"`
	Old      Counts        `json:"old"`
	New      Counts        `json:"new"`
	Packages []packageDiff `json:"packages"`
	Images   imageDiff     `json:"images"`
	Others   []blobDiff    `json:"others,omitempty"` // of no package
}

// Counts are the numbers of items in a catalog. Images are those of bundles and their related images, without
// duplicates.
type Counts struct {
	Packages int `json:"packages"`
	Channels int `json:"channels"`
	Bundles  int `json:"bundles"`
	Images   int `json:"images"`
}

// packageDiff is a package that differs. If it was added or removed, all its content is listed as added or removed.
type packageDiff struct {
	Name         string            `json:"name"`
	Change       Change            `json:"change"`
	Fields       []fieldDiff       `json:"fields,omitempty"` // defaultChannel, description, icon
	Properties   []propertyDiff    `json:"properties,omitempty"`
	Channels     []channelDiff     `json:"channels,omitempty"`
	Bundles      []bundleDiff      `json:"bundles,omitempty"`
	Deprecations []deprecationDiff `json:"deprecations,omitempty"`
	Others       []blobDiff        `json:"others,omitempty"`
}

// fieldDiff is a value that differs; it is empty on a side that lacks it.
type fieldDiff struct {
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// channelDiff is a channel that differs. The field "head" has the comma-separated names of all heads if there is not
// exactly one.
type channelDiff struct {
	Name       string         `json:"name"`
	Change     Change         `json:"change"`
	Fields     []fieldDiff    `json:"fields,omitempty"` // head
	Properties []propertyDiff `json:"properties,omitempty"`
	Entries    []entryDiff    `json:"entries,omitempty"`
}

// entryDiff is an entry of a channel that differs, with its upgrade edges. Old is nil if it was added, New if it was
// removed.
type entryDiff struct {
	Name   string `json:"name"`
	Change Change `json:"change"`
	Old    *edge  `json:"old,omitempty"`
	New    *edge  `json:"new,omitempty"`
}

// edge are the upgrade edges that lead to an entry. Skips are sorted, without duplicates.
type edge struct {
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// bundleDiff is a bundle that differs. Version is the new version, or that of a removed bundle.
type bundleDiff struct {
	Name          string         `json:"name"`
	Change        Change         `json:"change"`
	Version       string         `json:"version,omitempty"`
	Fields        []fieldDiff    `json:"fields,omitempty"` // of these only the image is compared
	Properties    []propertyDiff `json:"properties,omitempty"`
	RelatedImages []imageChange  `json:"relatedImages,omitempty"`
}

// imageChange is a related image that was added to or removed from a bundle.
type imageChange struct {
	Name   string `json:"name,omitempty"`
	Image  string `json:"image"`
	Change Change `json:"change"`
}

// propertyDiff is a property that differs. Old and New are its values; a value of more than 512 bytes is replaced by an
// object with "digest" and "size".
type propertyDiff struct {
	Type   string          `json:"type"`
	Change Change          `json:"change"`
	Old    json.RawMessage `json:"old,omitempty"`
	New    json.RawMessage `json:"new,omitempty"`
}

// deprecationDiff is a deprecation that differs. Schema and Name identify the deprecated item; Old and New are the
// messages.
type deprecationDiff struct {
	Schema string `json:"schema"`
	Name   string `json:"name,omitempty"`
	Change Change `json:"change"`
	Old    string `json:"old,omitempty"`
	New    string `json:"new,omitempty"`
}

// blobDiff is a blob of an unknown schema, or an unknown field of the blob (Schema, Name).
type blobDiff struct {
	Schema string `json:"schema"`
	Name   string `json:"name,omitempty"`
	Field  string `json:"field,omitempty"`
	Change Change `json:"change"`
}

// imageDiff are the images that only one of the catalogs needs, over all bundles.
type imageDiff struct {
	Added   []string `json:"added"`
	Removed []string `json:"removed"`
}
