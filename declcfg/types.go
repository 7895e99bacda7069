package declcfg

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"github.com/operator-bindery/bindery/internal/problem"
)

// The schemas that this package knows. Blobs of any other schema are kept as [Meta].
const (
	SchemaPackage      = "olm.package"
	SchemaChannel      = "olm.channel"
	SchemaBundle       = "olm.bundle"
	SchemaDeprecations = "olm.deprecations"
)

// Catalog is a whole catalog, or a part of one. The order of the blobs in each slice has no meaning; [Catalog.Sort]
// defines the canonical one. A Catalog is not safe for concurrent modification.
type Catalog struct {
	Packages     []Package
	Channels     []Channel
	Bundles      []Bundle
	Deprecations []Deprecations
	Others       []Meta
}

// Blob is one document of a catalog: a *[Package], *[Channel], *[Bundle], *[Deprecations] or *[Meta]. What has
// nothing to say about a type handles its blobs as those of a Meta.
type Blob interface {
	// BlobSchema returns the value of the blob's "schema" field.
	BlobSchema() string
	// BlobPackage returns the package that the blob belongs to; empty for blobs of no package. For an olm.package blob
	// it is the blob's name.
	BlobPackage() string
	// BlobName returns the value of the blob's "name" field; empty if there is none.
	BlobName() string
	// Position returns where the blob was read from; the zero Position if it was not read from a file.
	Position() Position
	// MarshalJSON returns the compact JSON of the blob: its fields in the order of the specification.
	json.Marshaler
}

// Position is a position in a catalog's files. The file is relative to the file system that was read, and Dir is
// [LoadOptions.Dir]. Line 0 means that only the file is known, column 0 that only the line is.
type Position = problem.Place

// Document is the text of a blob in a file.
type Document struct {
	Position
	// Start and End are byte offsets in the file: of the object in a JSON file, or of a YAML document between its
	// separator lines, with comments.
	Start, End int64
	// JSON reports that the document is read as JSON.
	JSON bool
}

// Package is an olm.package blob. Its tags, like those of the other blobs, are what reading and writing it follow.
type Package struct {
	Name           string     `json:"name"`
	DefaultChannel string     `json:"defaultChannel"`
	Icon           *Icon      `json:"icon,omitempty"`
	Description    string     `json:"description,omitempty"`
	Properties     []Property `json:"properties,omitempty"`
	Unknown        []Field    `json:"-"`
	Pos            Position   `json:"-"`
}

// Icon is the icon of a package. Data are the raw bytes of the picture, not base64.
type Icon struct {
	Data      []byte `json:"base64data"`
	MediaType string `json:"mediatype"`

	dropped string // the digest of dropped data, see Index.Stubs
}

// NewIcon returns the icon of a ClusterServiceVersion, whose data is base64; nil if it has no data. Blanks and ends of lines in
// the data, which some catalogs have, do not count.
func NewIcon(encoded, mediaType string) (*Icon, error) {
	data, err := base64.StdEncoding.DecodeString(strings.Join(strings.Fields(encoded), ""))
	if err != nil || len(data) == 0 {
		return nil, err
	}
	return &Icon{Data: data, MediaType: mediaType}, nil
}

// Digest returns the digest of the picture: "sha256:" and hexadecimal digits.
func (i *Icon) Digest() string {
	if i.dropped != "" {
		return i.dropped
	}
	return fmt.Sprintf("sha256:%x", sha256.Sum256(i.Data))
}

// Channel is an olm.channel blob: one sequence of upgrades through the bundles of a package.
type Channel struct {
	Name       string         `json:"name"`
	Package    string         `json:"package,omitempty"`
	Entries    []ChannelEntry `json:"entries"`
	Properties []Property     `json:"properties,omitempty"`
	Unknown    []Field        `json:"-"`
	Pos        Position       `json:"-"`
}

// Heads returns the names of the entries that no entry replaces or skips, in their order. A valid channel has one.
func (c *Channel) Heads() []string { return c.Upgrades().Heads() }

// ChannelEntry is a bundle in a channel with the upgrade edges that lead to it.
type ChannelEntry struct {
	Name      string   `json:"name"`
	Replaces  string   `json:"replaces,omitempty"`
	Skips     []string `json:"skips,omitempty"`
	SkipRange string   `json:"skipRange,omitempty"`
}

// Bundle is an olm.bundle blob: one version of an operator.
type Bundle struct {
	Name          string         `json:"name,omitempty"`
	Package       string         `json:"package,omitempty"`
	Image         string         `json:"image"`
	Properties    []Property     `json:"properties,omitempty"`
	RelatedImages []RelatedImage `json:"relatedImages,omitempty"`
	Unknown       []Field        `json:"-"`
	Pos           Position       `json:"-"`

	// HasObjects reports whether the bundle has olm.bundle.object properties, even if a skeleton load has dropped them
	// (see LoadOptions.Skeleton).
	HasObjects bool `json:"-"`

	loaded completeness
	// What is known of values that are not loaded: what the manifests say that the bundle substitutes for, and the first
	// property that cannot be decoded.
	substitutesFor string
	propertyErr    *propertyError
}

// completeness is how much of a bundle is loaded.
type completeness uint8

const (
	whole    completeness = iota // everything
	skeleton                     // everything but the values of large properties (isHeavy), which are droppedValue
	stub                         // the names and the image, see stubOf
)

// RelatedImage is an image that a bundle needs at run time. Name may be empty.
type RelatedImage struct {
	Name  string `json:"name"`
	Image string `json:"image"`
}

// Property is a typed value of a package, channel or bundle. Value is compact JSON; object keys are sorted if it was
// read from a catalog, and in the order of the type's fields if it was derived from a bundle. It is nil if the source
// has no value.
type Property struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
}

// Deprecations is an olm.deprecations blob.
type Deprecations struct {
	Package string             `json:"package,omitempty"`
	Entries []DeprecationEntry `json:"entries"`
	Unknown []Field            `json:"-"`
	Pos     Position           `json:"-"`
}

// DeprecationEntry marks a package (empty name), a channel or a bundle as deprecated.
type DeprecationEntry struct {
	Reference Reference `json:"reference"`
	Message   string    `json:"message"`
}

// Reference names a blob within a package.
type Reference struct {
	Schema string `json:"schema"`
	Name   string `json:"name,omitempty"`
}

// Meta is a blob of any schema: Blob is its whole JSON object, compact, keys sorted, numbers as written.
type Meta struct {
	Schema  string
	Package string
	Name    string
	Blob    json.RawMessage
	Pos     Position
}

// Field is a top-level field of a blob that its schema does not define. Loading and writing keep it.
type Field struct {
	Name  string
	Value json.RawMessage
}

func (p *Package) BlobSchema() string      { return SchemaPackage }
func (c *Channel) BlobSchema() string      { return SchemaChannel }
func (b *Bundle) BlobSchema() string       { return SchemaBundle }
func (d *Deprecations) BlobSchema() string { return SchemaDeprecations }
func (m *Meta) BlobSchema() string         { return m.Schema }

func (p *Package) BlobPackage() string      { return p.Name }
func (c *Channel) BlobPackage() string      { return c.Package }
func (b *Bundle) BlobPackage() string       { return b.Package }
func (d *Deprecations) BlobPackage() string { return d.Package }
func (m *Meta) BlobPackage() string         { return m.Package }

func (p *Package) BlobName() string      { return p.Name }
func (c *Channel) BlobName() string      { return c.Name }
func (b *Bundle) BlobName() string       { return b.Name }
func (d *Deprecations) BlobName() string { return "" }
func (m *Meta) BlobName() string         { return m.Name }

func (p *Package) Position() Position      { return p.Pos }
func (c *Channel) Position() Position      { return c.Pos }
func (b *Bundle) Position() Position       { return b.Pos }
func (d *Deprecations) Position() Position { return d.Pos }
func (m *Meta) Position() Position         { return m.Pos }

func (p *Package) origin() (*Position, *[]Field)      { return &p.Pos, &p.Unknown }
func (c *Channel) origin() (*Position, *[]Field)      { return &c.Pos, &c.Unknown }
func (b *Bundle) origin() (*Position, *[]Field)       { return &b.Pos, &b.Unknown }
func (d *Deprecations) origin() (*Position, *[]Field) { return &d.Pos, &d.Unknown }

// Add appends a blob to the catalog. A *Meta of a known schema is kept as a Meta, and so is a blob of a type that the
// catalog has no slice for.
func (c *Catalog) Add(b Blob) {
	switch b := b.(type) {
	case *Package:
		c.Packages = append(c.Packages, *b)
	case *Channel:
		c.Channels = append(c.Channels, *b)
	case *Bundle:
		c.Bundles = append(c.Bundles, *b)
	case *Deprecations:
		c.Deprecations = append(c.Deprecations, *b)
	case *Meta:
		c.Others = append(c.Others, *b)
	default:
		c.Others = append(c.Others, Meta{Schema: b.BlobSchema(), Package: b.BlobPackage(), Name: b.BlobName(),
			Blob: AppendJSON(nil, b, false), Pos: b.Position()})
	}
}

// Append appends the blobs of another catalog, with which it shares memory.
func (c *Catalog) Append(o *Catalog) {
	c.Packages = append(c.Packages, o.Packages...)
	c.Channels = append(c.Channels, o.Channels...)
	c.Bundles = append(c.Bundles, o.Bundles...)
	c.Deprecations = append(c.Deprecations, o.Deprecations...)
	c.Others = append(c.Others, o.Others...)
}

// All yields every blob of the catalog in the order of the slices, whether or not it is written. The blobs point into
// the catalog.
func (c *Catalog) All() iter.Seq[Blob] {
	return func(yield func(Blob) bool) {
		_ = yieldAll[Package](c.Packages, yield) && yieldAll[Channel](c.Channels, yield) &&
			yieldAll[Bundle](c.Bundles, yield) && yieldAll[Deprecations](c.Deprecations, yield) &&
			yieldAll[Meta](c.Others, yield)
	}
}

func yieldAll[T any, P interface {
	*T
	Blob
}](blobs []T, yield func(Blob) bool) bool {
	for i := range blobs {
		if !yield(P(&blobs[i])) {
			return false
		}
	}
	return true
}
