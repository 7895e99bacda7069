package inspect

import (
	"time"

	"github.com/opencontainers/go-digest"
)

// Kind is what an image holds.
type Kind string

// The kinds of images.
const (
	Catalog  Kind = "catalog"
	Database Kind = "database"
	Bundle   Kind = "bundle"
	Unknown  Kind = "unknown"
)

// Report is what an image is. Sizes are in bytes. As JSON it is stable: fields are added, none is removed.
type Report struct {
	// Name is what was asked for. Reference is what the same image can be had by again, and Source where it was found if the
	// name does not say that.
	Name      string `json:"name"`
	Reference string `json:"reference"`
	Source    string `json:"source,omitempty"`
	// Digest and MediaType are those of the manifest or index that the name stands for.
	Digest      digest.Digest     `json:"digest"`
	MediaType   string            `json:"mediaType"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Kind        Kind              `json:"kind"`
	// Built reports whether the image's labels say that this module built it.
	Built bool `json:"built"`
	// Path is where the image says that its catalog, database or manifests are.
	Path string `json:"path,omitempty"`
	// Size sums up the layers, each once, as they are sent; Uncompressed as archives, 0 if they were not read.
	Size         int64   `json:"bytes"`
	Uncompressed int64   `json:"uncompressed,omitempty"`
	Images       []Image `json:"images"`
	// Layers are those of all images, each once, or as often as it is in one image.
	Layers   []Layer   `json:"layers"`
	Packages []Package `json:"packages"`
	Caches   []Cache   `json:"caches"`
	// Others are the entries of the index that are no images.
	Others []Entry `json:"others,omitempty"`
	// Proof is what came of reading the layers; nil if they were not read.
	Proof *Proof `json:"proof,omitempty"`
}

// Image is the image of one platform.
type Image struct {
	Platform  string        `json:"platform"`
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"mediaType"`
	Config    digest.Digest `json:"config"`
	// Compression is that of the layers; "mixed" if they differ.
	Compression string            `json:"compression"`
	Created     *time.Time        `json:"created,omitempty"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations,omitempty"`
	User        string            `json:"user,omitempty"`
	Entrypoint  []string          `json:"entrypoint,omitempty"`
	Cmd         []string          `json:"cmd,omitempty"`
	Size        int64             `json:"bytes"`
	// Layers are the digests of Report.Layers, the lowest first.
	Layers []digest.Digest `json:"layers"`
}

// Layer is a layer of one or more of the images.
type Layer struct {
	Digest    digest.Digest `json:"digest"`
	DiffID    digest.Digest `json:"diffID"`
	MediaType string        `json:"mediaType"`
	// Kind and Packages are what the image says of the layer in its annotations or its history, or, where it has been read,
	// what was found in it. Empty means that nothing is known.
	Kind     string        `json:"kind,omitempty"`
	Packages []string      `json:"packages,omitempty"`
	Key      digest.Digest `json:"key,omitempty"`
	Size     int64         `json:"bytes"`
	// Uncompressed and Files are known if the layer was read.
	Uncompressed int64 `json:"uncompressed,omitempty"`
	Files        int   `json:"files,omitempty"`
}

// Package is a package of the catalog and the layers that have files of it.
type Package struct {
	Name   string          `json:"name"`
	Layers []digest.Digest `json:"layers"`
}

// CacheFormat is a format of the caches that servers of catalogs have.
type CacheFormat string

// The formats of caches.
const (
	NativeCache   CacheFormat = "native"
	JSONCache     CacheFormat = "opm-json"
	PogrebCache   CacheFormat = "opm-pogreb"
	UnknownFormat CacheFormat = "unknown"
)

// CacheState is what is known of a cache.
type CacheState string

// The states of caches.
const (
	CacheNamed     CacheState = "named"     // by the command line; the layers were not read
	CacheValid     CacheState = "valid"     // it matches the catalog
	CacheInvalid   CacheState = "invalid"   // it does not
	CacheMissing   CacheState = "missing"   // the command line names it, and it is not there
	CacheUnchecked CacheState = "unchecked" // it is there, and of no known format
)

// Cache is a cache in the image.
type Cache struct {
	Path   string      `json:"path"`
	Format CacheFormat `json:"format"`
	State  CacheState  `json:"state"`
	// Why says why it is not valid.
	Why string `json:"why,omitempty"`
}

// Entry is an entry of an index that is not an image.
type Entry struct {
	Digest       digest.Digest `json:"digest"`
	MediaType    string        `json:"mediaType"`
	ArtifactType string        `json:"artifactType,omitempty"`
	Size         int64         `json:"bytes"`
}

// Proof is what came of reading all layers.
type Proof struct {
	// Same says that the image is what its catalog says: there are no differences.
	Same bool `json:"same"`
	// Layers have been read, Rebuilt of them built again from their content, with the same bytes if there is no difference.
	Layers  int `json:"layers"`
	Rebuilt int `json:"rebuilt"`
	// Files and Packages of the catalog have been read and validated.
	Files    int `json:"files"`
	Packages int `json:"packages"`
	// Differences are at most [maxDifferences]; More says how many there are beyond.
	Differences []Difference `json:"differences"`
	More        int          `json:"more,omitempty"`
	// Notes are no differences, but worth knowing.
	Notes []string `json:"notes,omitempty"`
}

// maxDifferences is how many differences are reported.
const maxDifferences = 1000

// Subject is what a difference is about.
type Subject string

// The subjects of differences.
const (
	AboutIndex      Subject = "index"      // of what the index says of an image
	AboutConfig     Subject = "config"     // of the image's configuration
	AboutLabel      Subject = "label"      // of a label
	AboutAnnotation Subject = "annotation" // of the annotations of a layer
	AboutLayer      Subject = "layer"      // of a layer's bytes or entries
	AboutMode       Subject = "mode"       // of who may read a file
	AboutCatalog    Subject = "catalog"    // of the catalog itself
	AboutCache      Subject = "cache"
	AboutDatabase   Subject = "database"
	AboutBundle     Subject = "bundle"
	AboutServer     Subject = "server"
)

// Difference is one thing in which the image is not what it says.
type Difference struct {
	About    Subject       `json:"about"`
	Platform string        `json:"platform,omitempty"`
	Image    digest.Digest `json:"image,omitempty"`
	Layer    digest.Digest `json:"layer,omitempty"`
	Package  string        `json:"package,omitempty"`
	File     string        `json:"file,omitempty"`
	Message  string        `json:"message"`
}
