package imageset

import (
	"regexp"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Kind is the kind of a configuration.
type Kind string

// The kinds.
const (
	Image  Kind = "ImageSetConfiguration"
	Delete Kind = "DeleteImageSetConfiguration"
)

// stanza returns the field that has the images.
func (k Kind) stanza() string {
	if k == Delete {
		return "delete"
	}
	return "mirror"
}

const (
	// APIVersion is the version of configurations that is read and written.
	APIVersion = "mirror.openshift.io/v2alpha1"
	// MaxConfig is the largest configuration file in bytes.
	MaxConfig = 4 << 20
	// Docker and OCI are the transports of references that every image set can have.
	Docker, OCI = "docker", "oci"
)

// Set is what a configuration asks for. It must not be changed.
type Set struct {
	Kind Kind
	// APIVersion is as given; it may be empty.
	APIVersion string
	// ArchiveSize is the size of an archive's segments in GiB, as given; 0 means 500, see [Set.SegmentSize].
	ArchiveSize      int64
	Operators        []Operator
	AdditionalImages []AdditionalImage
	BlockedImages    []Blocked
	// Unsupported are the fields that are not empty and that this program does not mirror: platform, helm, samples.
	// They are only there with [Options].IgnoreUnsupported.
	Unsupported []string
	// Text is the file as it was read.
	Text []byte
	// Warnings are remarks about what was accepted.
	Warnings []Problem
}

// SegmentSize returns the size of an archive's segments in GiB, where 500 is the default.
func (s *Set) SegmentSize() int64 {
	if s.ArchiveSize <= 0 {
		return 500
	}
	return s.ArchiveSize
}

// Operator is a catalog of which something is wanted.
type Operator struct {
	// Catalog has a tag, a digest or both, or is a layout. Written is the reference as it stands in the file.
	Catalog Ref
	Written string
	// Full wants all bundles of the packages and channels, not only the heads.
	Full bool
	// Packages are those to keep; none means all.
	Packages []Package
	// TargetCatalog replaces the path at the destination, TargetTag the tag.
	TargetCatalog, TargetTag string
	// TargetCatalogSourceTemplate is the path of a CatalogSource to be filled in.
	TargetCatalogSourceTemplate string
	// Platforms, unless empty, are the platforms to copy; OS and Architecture are set in each.
	Platforms        []v1.Platform
	SkipDependencies bool
	Line             int
}

// WholeCatalog reports whether the catalog is wanted as it is, neither filtered nor rebuilt.
func (o *Operator) WholeCatalog() bool { return o.Full && len(o.Packages) == 0 }

// Package is a package to keep.
type Package struct {
	Name string
	// Channels are those to keep; none means all.
	Channels []Channel
	// DefaultChannel, unless empty, becomes the default channel.
	DefaultChannel string
	// MinVersion and MaxVersion bound the versions, both inclusive; may be shorter than three numbers.
	MinVersion, MaxVersion string
	Line                   int
}

// Channel is a channel to keep, with bounds as in [Package].
type Channel struct {
	Name                   string
	MinVersion, MaxVersion string
	Line                   int
}

// AdditionalImage is an image that no catalog names.
type AdditionalImage struct {
	// Name has a tag, a digest or both, or is a layout. Written is the reference as it stands in the file.
	Name    Ref
	Written string
	// TargetRepo replaces the path at the destination, TargetTag the tag.
	TargetRepo, TargetTag string
	Platforms             []v1.Platform
	Line                  int
}

// Blocked is a rule of images that are left out.
type Blocked struct {
	// Name is the expression as written, Pattern its compiled form. It is not anchored.
	Name    string
	Pattern *regexp.Regexp
	Line    int
}
