package inspect

import (
	"time"

	"github.com/opencontainers/go-digest"
)

// Kind is the content type of an image.
type Kind string

// The kinds of images.
const (
	Catalog  Kind = "catalog"
	Database Kind = "database"
	Bundle   Kind = "bundle"
	Unknown  Kind = "unknown"
)

// Report describes an image. Sizes are in bytes. The JSON form is stable: fields may be added, none is removed.
type Report struct {
	// Name is the name that was inspected. Reference names the same image by digest. Source is the location that it was
	// found in, if the name does not say so.
	Name      string `json:"name"`
	Reference string `json:"reference"`
	Source    string `json:"source,omitempty"`
	// Digest and MediaType are those of the manifest or index that the name resolves to.
	Digest      digest.Digest     `json:"digest"`
	MediaType   string            `json:"mediaType"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Kind        Kind              `json:"kind"`
	// Built reports whether the labels claim that bindery built the image.
	Built bool `json:"built"`
	// Path is the directory or file of the catalog, database or manifests, as the image declares it.
	Path string `json:"path,omitempty"`
	// Size is the total size of the layers as transferred, each counted once. Uncompressed is the total of their
	// archives, 0 if the layers were not read.
	Size         int64   `json:"bytes"`
	Uncompressed int64   `json:"uncompressed,omitempty"`
	Images       []Image `json:"images"`
	// Layers are the layers of all images. A layer that several images share is listed once, one that an image repeats
	// as often as the image has it.
	Layers   []Layer   `json:"layers"`
	Packages []Package `json:"packages"`
	Caches   []Cache   `json:"caches"`
	// Others are entries of the index that are not images.
	Others []Entry `json:"others,omitempty"`
	// Proof is the result of reading the layers; nil if they were not read.
	Proof *proof `json:"proof,omitempty"`
}

// Image is the image of one platform.
type Image struct {
	Platform  string        `json:"platform"`
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"mediaType"`
	Config    digest.Digest `json:"config"`
	// Compression is the one of the layers; "mixed" if they differ.
	Compression string            `json:"compression"`
	Created     *time.Time        `json:"created,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	User        string            `json:"user,omitempty"`
	Entrypoint  []string          `json:"entrypoint,omitempty"`
	Cmd         []string          `json:"cmd,omitempty"`
	Size        int64             `json:"bytes"`
	// Layers are the digests of the image's layers, the lowest first. They are in Report.Layers.
	Layers []digest.Digest `json:"layers"`
}

// Layer is a layer of one or more images.
type Layer struct {
	Digest    digest.Digest `json:"digest"`
	DiffID    digest.Digest `json:"diffID"`
	MediaType string        `json:"mediaType"`
	// Kind and Packages come from the image's annotations or history, or from the content of the layer if it was read.
	// Empty means unknown.
	Kind     string        `json:"kind,omitempty"`
	Packages []string      `json:"packages,omitempty"`
	Key      digest.Digest `json:"key,omitempty"`
	Size     int64         `json:"bytes"`
	// Uncompressed and Files are set if the layer was read.
	Uncompressed int64 `json:"uncompressed,omitempty"`
	Files        int   `json:"files,omitempty"`
}

// Package is a package of the catalog and the layers that contain its files.
type Package struct {
	Name   string          `json:"name"`
	Layers []digest.Digest `json:"layers"`
}

// CacheFormat is a format of serve caches.
type CacheFormat string

// The formats of caches.
const (
	NativeCache   CacheFormat = "native"
	JSONCache     CacheFormat = "opm-json"
	PogrebCache   CacheFormat = "opm-pogreb"
	UnknownFormat CacheFormat = "unknown"
)

// CacheState is the result of verifying a cache.
type CacheState string

// The states of caches.
const (
	CacheNamed     CacheState = "named"     // the command line names it; the layers were not read
	CacheValid     CacheState = "valid"     // it matches the catalog
	CacheInvalid   CacheState = "invalid"   // it does not match the catalog
	CacheMissing   CacheState = "missing"   // the command line names it, but it does not exist
	CacheUnchecked CacheState = "unchecked" // it is there, and of no known format
)

// Cache is a cache in the image.
type Cache struct {
	Path   string      `json:"path"`
	Format CacheFormat `json:"format"`
	State  CacheState  `json:"state"`
	// Why explains why the cache is not valid.
	Why string `json:"why,omitempty"`
}

// Entry is an entry of an index that is not an image.
type Entry struct {
	Digest       digest.Digest `json:"digest"`
	MediaType    string        `json:"mediaType"`
	ArtifactType string        `json:"artifactType,omitempty"`
	Size         int64         `json:"bytes"`
}

// proof is the result of reading every layer.
type proof struct {
	// Same reports that there are no differences.
	Same bool `json:"same"`
	// Layers is the number of layers read, Rebuilt the number of those that were rebuilt from their content and
	// compared.
	Layers  int `json:"layers"`
	Rebuilt int `json:"rebuilt"`
	// Files and Packages are the numbers of catalog files and packages that were read and validated.
	Files    int `json:"files"`
	Packages int `json:"packages"`
	// Differences has at most 1000 entries; More is the number of those left out.
	Differences []difference `json:"differences"`
	More        int          `json:"more,omitempty"`
	// Notes are findings that are not differences.
	Notes []string `json:"notes,omitempty"`
}

// maxDifferences is the maximum length of [Proof.Differences].
const maxDifferences = 1000

// subject is the part of the image that a difference is about.
type subject string

// The subjects of differences.
const (
	aboutIndex      subject = "index"      // the index's entry of an image
	aboutConfig     subject = "config"     // the image's configuration
	aboutLabel      subject = "label"      // of a label
	aboutAnnotation subject = "annotation" // of the annotations of a layer
	aboutLayer      subject = "layer"      // a layer's bytes or entries
	aboutMode       subject = "mode"       // the permissions of a file
	aboutCatalog    subject = "catalog"    // the catalog itself
	aboutCache      subject = "cache"
	aboutDatabase   subject = "database"
	aboutBundle     subject = "bundle"
	aboutServer     subject = "server"
)

// difference is one contradiction between an image's content and its metadata, or the layer that bindery would build.
type difference struct {
	About    subject       `json:"about"`
	Platform string        `json:"platform,omitempty"`
	Image    digest.Digest `json:"image,omitempty"`
	Layer    digest.Digest `json:"layer,omitempty"`
	Package  string        `json:"package,omitempty"`
	File     string        `json:"file,omitempty"`
	Message  string        `json:"message"`
}
