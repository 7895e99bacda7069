package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/internal/verify"
	"github.com/operator-bindery/bindery/layers"
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

// addLayers adds the layers of one platform's image to Layers. A layer that the image repeats is listed as many times
// as in the image with the most repetitions.
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

// Store returns the image as a place with one image, its [Image.Top]. It has no tags, and nothing is attached to it. It
// is safe for concurrent use.
func (i *Image) Store() store.Reader {
	sizes := map[digest.Digest]int64{}
	for _, text := range append(slices.Collect(maps.Values(i.manifests)), i.manifest) {
		if parts, err := store.PartsOf(text); err == nil {
			for _, d := range parts.Blobs {
				sizes[d.Digest] = d.Size
			}
		}
	}
	manifest := func(_ context.Context, d digest.Digest) ([]byte, string, error) {
		text, ok := i.manifests[d]
		if !ok {
			return nil, "", fmt.Errorf("%w: %.140q is not in the image", fs.ErrNotExist, d)
		}
		return bytes.Clone(text), manifestType(i.MediaType), nil
	}
	return place{store.Single{Top: i.Top(), Text: i.manifest, Entry: manifest}, i, sizes}
}

// Top returns the descriptor of the index or manifest.
func (i *Image) Top() v1.Descriptor {
	return v1.Descriptor{MediaType: i.MediaType, Digest: i.Digest, Size: int64(len(i.manifest))}
}

// place reads an assembled image.
type place struct {
	store.Single
	image *Image
	sizes map[digest.Digest]int64 // of the blobs
}

// Can tells where blobs are: layers can be mounted from the repositories of the base, of reused images, of the previous
// image, and of earlier pushes; and they are files, or one can be made.
func (p place) Can() store.Abilities {
	return store.Abilities{Complete: true,
		Repositories: func(d digest.Digest) []string { return p.image.lenders[d] },
		File: func(ctx context.Context, d digest.Digest, make bool) (path string, ok bool) {
			if l, lazy := p.image.lazy[d]; lazy {
				if path, ok = l.path(); ok || !make {
					return path, ok
				}
				return l.file(ctx)
			}
			path, ok = p.image.files[d]
			return path, ok
		}}
}

func (p place) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	size, known := p.sizes[d.Digest]
	return known && size == d.Size, nil
}

// Blob opens a configuration or a layer. A layer may be written, or fetched from the base or another image, only at this
// point.
func (p place) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	return store.Skip(func() (io.ReadCloser, error) {
		r, _, err := p.image.open(ctx, d.Digest)
		if err != nil || verify.Verifies(r, d.Digest, d.Size) {
			return r, err
		}
		return verify.Body(ctx, r, d.Digest, d.Size), nil
	}, from)
}

// open opens a blob, and returns its size.
func (i *Image) open(ctx context.Context, d digest.Digest) (io.ReadCloser, int64, error) {
	if config, ok := i.configs[d]; ok {
		return io.NopCloser(bytes.NewReader(config)), int64(len(config)), nil
	}
	if path, ok := i.files[d]; ok {
		f, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		stat, err := f.Stat()
		if err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		return f, stat.Size(), nil
	}
	if l, ok := i.lazy[d]; ok {
		return l.open(ctx)
	}
	if b, ok := i.bases[d]; ok {
		return b.blob(ctx, d)
	}
	if l, ok := i.remote[d]; ok {
		return l.open(ctx)
	}
	return nil, 0, fmt.Errorf("%w: no blob %s in the image", fs.ErrNotExist, d)
}

// Copy copies the image to all destinations as [images.Copy] does, and records in [Options.Cache] which repositories
// have its layers. A cached layer may differ from its record, which is detected only when a destination reads its
// bytes. The image is then rebuilt without the cache, with another digest, and copied. Nothing else may use the image
// meanwhile.
func (i *Image) Copy(ctx context.Context, dests []transport.Destination, o images.CopyOptions) ([]images.Result, error) {
	var results []images.Result
	err := i.useCurrent(ctx, func() (err error) {
		results, err = images.Copy(ctx, i.Store(), i.Top(), dests, o)
		return err
	})
	if err == nil {
		i.pushed(results)
	}
	return results, err
}

// renew rebuilds the image without the cache.
func (i *Image) renew(ctx context.Context) error {
	if err := i.Close(); err != nil {
		return err
	}
	fresh, err := i.rebuild(ctx)
	if err != nil {
		return err
	}
	*i = *fresh
	return nil
}

// rebuilds lets [Image.Copy] rebuild the image if it has cached layers.
func (i *Image) rebuilds(o Options, again func(context.Context, Options) (*Image, error)) {
	if o.Cache == nil {
		return
	}
	o.Cache = nil
	i.warn = o.Warn
	i.rebuild = func(ctx context.Context) (*Image, error) { return again(ctx, o) }
}

// pushed records which repositories have the layers, so that later builds can mount them from there.
func (i *Image) pushed(results []images.Result) {
	if i.known == nil {
		return
	}
	layer := map[string]bool{}
	for _, l := range i.Layers {
		layer[l.Digest.String()] = true
	}
	for _, r := range results {
		at, err := images.BuiltIn().Parse(r.Destination)
		if err != nil || !at.InRegistry() {
			continue
		}
		ref, err := reference.ParseNormalizedNamed(at.Name)
		if err != nil {
			continue
		}
		for _, b := range r.Blobs {
			if layer[b.Digest.String()] {
				i.known.addRepository(b.Digest, ref.Name())
			}
		}
	}
}

// Examine calls read with a survey of the image, which has no name. Nothing is copied, and layers are written or
// fetched as they are read. As for [Image.Copy], an image with a cached layer that differs from its record is rebuilt,
// and read is called again for the new one. Nothing else may use the image meanwhile.
func (i *Image) Examine(ctx context.Context, read func(*images.Survey) error) error {
	return i.useCurrent(ctx, func() (err error) {
		src, err := images.At(ctx, i.Store(), i.Top())
		if err != nil {
			return err
		}
		survey, err := src.Survey(ctx)
		if err != nil {
			return err
		}
		return read(survey)
	})
}

// useCurrent calls use, which reads the image, and calls it again if the image had to be rebuilt.
func (i *Image) useCurrent(ctx context.Context, use func() error) error {
	err := use()
	var stale *staleError
	if !errors.As(err, &stale) || i.rebuild == nil {
		return err
	}
	if i.warn != nil {
		i.warn(fmt.Sprintf("layer %s differs from the cache record: the image is rebuilt without the cache",
			stale.Layer))
	}
	if err := i.renew(ctx); err != nil {
		return err
	}
	return use()
}
