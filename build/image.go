package build

import (
	"context"
	"errors"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/layers"
)

// CompressionAuto makes an index with two images for each platform: the same layers once compressed with gzip and once
// with zstd. It is for clusters where not all clients support zstd.
const CompressionAuto layers.Compression = "auto"

// Format is the family of media types that an image is described with.
type Format string

// The formats of images.
const (
	FormatOCI    Format = "oci"
	FormatDocker Format = "docker"
)

// Image is an assembled image: its manifests and configurations are in memory, its own layers in files or in the cache,
// the layers of its base in the base's location. [Image.Store] reads it. It is safe for concurrent use except for
// [Image.Copy]. Close it after it has been copied.
type Image struct {
	// Digest is that of the manifest, or of the index if the image is for several platforms.
	Digest    digest.Digest `json:"digest"`
	MediaType string        `json:"mediaType"`
	// Platforms are the images of the index, or the only image.
	Platforms []PlatformImage `json:"platforms"`
	// Layers are all layers in the order of the first image with them, without duplicates except those within one
	// image: a layer of the base can be repeated on top of it.
	Layers []Layer `json:"layers"`
	// Totals sum up Layers and their sizes in bytes, counting each layer once.
	Totals struct {
		Layers       int   `json:"layers"`
		Packages     int   `json:"packages"`
		Size         int64 `json:"bytes"`
		Uncompressed int64 `json:"uncompressed"`
	} `json:"totals"`
	// BaseServer is the server of the base if it serves the image; empty if a server was added.
	BaseServer string `json:"baseServer,omitempty"`
	// Hidden are the catalogs and databases of a base that is an index. They are hidden in the image, but remain in the
	// layers of the base.
	Hidden []string `json:"hiddenInBase,omitempty"`
	// Composed reports how the references of a composition were used, in their order.
	Composed []Composed `json:"composed,omitempty"`

	known     *Cache
	manifest  []byte
	manifests map[digest.Digest][]byte
	configs   map[digest.Digest][]byte
	files     map[digest.Digest]string
	lazy      map[digest.Digest]*lazyLayer
	bases     map[digest.Digest]*base
	remote    map[digest.Digest]*remoteBlob
	lenders   map[digest.Digest][]string
	closers   []io.Closer
	rebuild   func(context.Context) (*Image, error)
	warn      func(string)
}

// PlatformImage is the image of one platform.
type PlatformImage struct {
	Platform v1.Platform   `json:"platform"`
	Digest   digest.Digest `json:"digest"`
	// Config is the digest of the configuration, which container engines call the image's ID.
	Config digest.Digest `json:"config"`
	// Compression distinguishes two images for the same platform, see [CompressionAuto]; empty if there is one.
	Compression string `json:"compression,omitempty"`
}

// Layer is one layer of an image. Sizes are in bytes.
type Layer struct {
	Kind LayerKind `json:"kind"`
	// Packages are the packages whose catalogs are in the layer, sorted.
	Packages []string `json:"packages,omitempty"`
	// Key is a digest of the inputs of the layer, computed without writing it; empty if it was not computed.
	Key          digest.Digest `json:"key,omitempty"`
	MediaType    string        `json:"mediaType"`
	Digest       digest.Digest `json:"digest"`
	DiffID       digest.Digest `json:"diffID"`
	Size         int64         `json:"bytes"`
	Uncompressed int64         `json:"uncompressed,omitempty"`
	// Remembered marks a layer from the cache of an earlier build.
	Remembered bool `json:"-"`

	// Content is the size of the catalogs in the layer, without caches.
	Content int64 `json:"content,omitempty"`
	// From is the image that the layer was reused from by digest; empty for written layers and those of the base.
	From string `json:"from,omitempty"`

	dir        string      // where a bundle's layer has its files
	remote     *remoteBlob // the source of a reused layer
	repository string      // the repository that has it, "HOST/REPOSITORY"; empty if it is in no registry
}

// LayerKind is the purpose of a layer.
type LayerKind string

// The kinds of layers.
const (
	LayerBase     LayerKind = "base"
	LayerServer   LayerKind = "server"
	LayerReset    LayerKind = "reset"
	LayerPackages LayerKind = "packages"
	LayerDatabase LayerKind = "database"
	// LayerCache is the part of a serve cache that depends on the whole catalog.
	LayerCache LayerKind = "cache"
	// Those of a bundle.
	LayerManifests LayerKind = "manifests"
	LayerMetadata  LayerKind = "metadata"
	LayerTests     LayerKind = "tests"
	// LayerFiles is a layer of a custom image. See [Assemble].
	LayerFiles LayerKind = "files"
)

// Manifest returns the text of the manifest or index.
func (i *Image) Manifest() []byte { return i.manifest }

// Close releases the base image and the inputs of layers. The files of the layers stay in [Options.Dir].
func (i *Image) Close() error {
	var errs []error
	for _, c := range i.closers {
		errs = append(errs, c.Close())
	}
	i.closers = nil
	return errors.Join(errs...)
}

// addLayers adds the layers of one platform's image to Layers, unless they are there as often.
func (i *Image) addLayers(ls []Layer) {
	left := map[digest.Digest]int{}
	for _, l := range i.Layers {
		left[l.Digest]++
	}
	for _, l := range ls {
		if left[l.Digest]--; left[l.Digest] < 0 {
			i.Layers = append(i.Layers, l)
		}
	}
}

func (i *Image) sum() {
	packages := map[string]bool{}
	sized := map[digest.Digest]bool{}
	i.Totals.Layers, i.Totals.Size, i.Totals.Uncompressed = len(i.Layers), 0, 0
	for _, l := range i.Layers {
		if !sized[l.Digest] {
			sized[l.Digest] = true
			i.Totals.Size += l.Size
			i.Totals.Uncompressed += l.Uncompressed
		}
		for _, p := range l.Packages {
			packages[p] = true
		}
	}
	i.Totals.Packages = len(packages)
}
