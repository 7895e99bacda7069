package medium

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
)

// contentsVersion is the version of [Contents] that is written. Readers refuse later ones.
const contentsVersion = 1

// Contents describes an archive. It is the last member of the last segment: bindery-mirror.json, in the form of
// oc-mirror working-dir/bindery-mirror.json. Who fills a part is said with it; the writer sets what is its own.
type Contents struct {
	// Version, Form, Key, Segments and LeftOut are set by [Writer.Finish].
	Version int    `json:"version"`
	Form    Form   `json:"form"`
	Key     string `json:"key,omitempty"`
	// Created is when the run was, if the caller sets it: it makes two archives of one content differ.
	Created *time.Time `json:"created,omitempty"`
	// Program names the program and its version.
	Program string `json:"program,omitempty"`
	// ImageSet is the text of the image set configuration.
	ImageSet string `json:"imageSet,omitempty"`
	// TrustedRoot is the text of a trusted root of Sigstore (trusted_root.json). A reader must know its digest from
	// elsewhere to trust it.
	TrustedRoot string    `json:"trustedRoot,omitempty"`
	Catalogs    []Catalog `json:"catalogs,omitempty"`
	Images      []Image   `json:"images,omitempty"`
	// Lacking is what was asked for and is not in the archive.
	Lacking []Lack `json:"lacking,omitempty"`
	// Part is set, as I/N, for the archive of one of N runs that divide an image set: it has no catalogs, and is useful
	// beside the others and the one that has the catalogs. A later version may have other forms.
	Part string `json:"part,omitempty"`
	// Parts tells that the archive has the catalogs of an image set that others divide, which have the images. Where they
	// are read together it is not set.
	Parts bool `json:"parts,omitempty"`
	// Account is the caller's own, as JSON.
	Account json.RawMessage `json:"account,omitempty"`
	// Segments are the files of the archive in order. The last one, which holds this, has no size and sum here.
	Segments []Segment `json:"segments"`
	// LeftOut are the blobs and manifests that the archive counts on at the destination.
	LeftOut []LeftOut `json:"leftOut,omitempty"`
}

// Catalog is a catalog in an archive.
type Catalog struct {
	// Source is the reference as configured, SourceDigest what it stood for.
	Source       string        `json:"source"`
	SourceDigest digest.Digest `json:"sourceDigest,omitempty"`
	// Filter is the hash of what was selected, as the tag of the filtered catalog has it.
	Filter string `json:"filter,omitempty"`
	// Path and Tag are where the catalog is in the archive and, below the destination, at the destination.
	Path   string        `json:"path"`
	Tag    string        `json:"tag"`
	Digest digest.Digest `json:"digest,omitempty"`
	// LeftOut are the bundles, as PACKAGE/BUNDLE, that were taken out of it since an image that they name was missing.
	LeftOut []string `json:"leftOut,omitempty"`
	// Missing are the packages, channels and versions that were asked for and that the source did not have, as sentences.
	Missing []string `json:"missing,omitempty"`
	// Packages are the names of the packages with their channels and these with their bundles.
	Packages map[string]map[string][]string `json:"packages,omitempty"`
}

// Image is an image in an archive.
type Image struct {
	Source string        `json:"source"`
	Path   string        `json:"path"`
	Tag    string        `json:"tag"`
	Digest digest.Digest `json:"digest"`
	// Bytes is the size of its manifests and blobs.
	Bytes int64 `json:"bytes,omitempty"`
	// Category is the kind of the image: catalog, bundle, related, additional, as the caller names them.
	Category string `json:"category,omitempty"`
	// Attached is what was packed with it: the tags of signatures, and the digests of referrers.
	Attached []string `json:"attached,omitempty"`
	// AtTarget tells that nothing of it is in the archive, since the destination has it, by an inventory.
	AtTarget bool `json:"atTarget,omitempty"`
}

// Lack is something that is not in the archive, and why.
type Lack struct {
	Name   string   `json:"name"`
	Reason string   `json:"reason"`
	Needed []string `json:"needed,omitempty"`
}

// Segment is one file of an archive.
type Segment struct {
	Name   string        `json:"name"`
	Bytes  int64         `json:"bytes,omitempty"`
	SHA256 digest.Digest `json:"sha256,omitempty"`
}

// LeftOut is a blob or manifest that is not in an archive, as the destination has it.
type LeftOut struct {
	Digest digest.Digest `json:"digest"`
	Size   int64         `json:"size,omitempty"`
	// MediaType is set for manifests.
	MediaType string `json:"mediaType,omitempty"`
	// Since is the time of the archive or inventory that had it, if that is known.
	Since *time.Time `json:"since,omitempty"`
	// Repositories are those that have it at the destination, if they are known.
	Repositories []string `json:"repositories,omitempty"`
}

// maxContents is the limit of the description in bytes.
const maxContents = 128 << 20

// parseContents reads a description.
func parseContents(text []byte) (*Contents, error) {
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(text, &version); err != nil {
		return nil, fmt.Errorf("%s: %w: %v", contentsFile, fault.ErrInvalid, err)
	}
	if version.Version < 1 || version.Version > contentsVersion {
		return nil, fmt.Errorf("%s: %w: version %d of the archive, and this program reads 1 to %d", contentsFile,
			fault.ErrInvalid, version.Version, contentsVersion)
	}
	c := &Contents{}
	if err := json.Unmarshal(text, c); err != nil {
		return nil, fmt.Errorf("%s: %w: %v", contentsFile, fault.ErrInvalid, err)
	}
	var names []string
	for i, s := range c.Segments {
		if s.Bytes < 0 {
			return nil, fmt.Errorf("%s: %w: segments[%d] has %d bytes", contentsFile, fault.ErrInvalid, i, s.Bytes)
		}
		names = append(names, s.Name)
	}
	if err := checkNames(names); err != nil || len(names) == 0 {
		return nil, fmt.Errorf("%s: %w: segments: %v", contentsFile, fault.ErrInvalid, cmp.Or(err, errNoSegments))
	}
	slices.SortStableFunc(c.LeftOut, func(a, b LeftOut) int { return compare(a.Digest, b.Digest) })
	return c, nil
}
