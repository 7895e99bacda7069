package build

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build/internal/cataloglayer"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
)

// Options configure a build. Dir is required; the zero value of everything else is useful.
type Options struct {
	// Dir is a private directory for the files of the layers. It must exist until the image has been copied; an
	// images.Workspace is made for this.
	Dir string
	// Format is OCI if empty.
	Format Format
	// Compression is "gzip" (the default), "zstd" or [CompressionAuto]. Docker's format supports gzip only.
	Compression layers.Compression
	// Base is the base image; nil means an empty root.
	Base *Base
	// TrimBase leaves out the upper layers of Base that have only what the image hides: its catalog and serve caches.
	TrimBase bool
	// Servers are the server programs, one for each platform of the image. Without one the image is for Platform and
	// needs a base with a server, or a cluster that provides one.
	Servers []Server
	// Platform is that of an image without servers; linux/amd64 if empty.
	Platform v1.Platform
	// Labels and Annotations override those of the base and of Source. A label about the content with another value
	// than the image's is refused.
	Labels      map[string]string
	Annotations map[string]string
	// Source, unless nil, describes the image that this one is built from. Its labels and still valid annotations are
	// inherited, for each platform from the image for that platform. They override those of the base. Labels about the
	// catalog, Labels and Annotations override them.
	Source *images.Description
	// Previous, unless nil, describes an earlier image. Its grouping of packages into layers is kept as far as
	// possible, and its layers can be mounted.
	Previous *Previous
	// Created is the time of the image in its configuration; 1970-01-01T00:00:00Z if zero. Files in layers always have
	// 1970, so that layers do not depend on the day of the build.
	Created time.Time
	// MaxLayers is the maximum number of layers, including the base; 100 if zero.
	MaxLayers int
	// Jobs is the number of layers written in parallel; one per processor if zero.
	Jobs int
	// Cache, unless nil, has layers of earlier builds. The input must then not change until the image is closed, see
	// [Image.NeedsInput].
	Cache *Cache
	// Ready, unless nil, is called before layers are written; its error is that of the build.
	Ready func() error
	// Warn, unless nil, is called with warnings about the content of layers; calls do not overlap.
	Warn func(string)
	// Planned, unless nil, is called with the number of layers that are about to be written or found in the cache, once
	// for each part of the image.
	Planned func(layers int)
	// Events, unless nil, is called with each layer that was written or found in the cache; calls do not overlap.
	Events func(Layer)

	caches cataloglayer.Caches // see SetServeCaches

	// See SetServer. severalPlatforms are those of an image without Servers, if there are several.
	severalPlatforms []v1.Platform
	// serverOf, unless nil, prefers the server of the base: if the base's configuration starts a program called opm on
	// each of the platforms, the image gets no other server, and no native cache, which that server would not support.
	// Otherwise serverOf is called for the server of each platform. Servers must be empty then.
	serverOf func(v1.Platform) (Server, error)
	// useBaseServer declares that the base has a server at /bin/opm, regardless of its configuration.
	useBaseServer bool
	serverLayers  *serverLayers // unless nil, has written layers of servers

	purpose purpose
	program string // the server program in the image
}

// defaultMaxLayers stays below the limit of container engines.
const defaultMaxLayers = 100

// Check returns an error that names the field, of the class [fault.Usage], for an unknown format or compression. Zero values,
// which a build replaces, are refused too.
func (o *Options) Check() error {
	if !slices.Contains([]Format{FormatOCI, FormatDocker}, o.Format) {
		return fault.Fieldf("invalid {Format} value %q, expected (oci|docker)", o.Format)
	}
	if _, err := layers.ParseCompression(string(o.Compression)); err != nil && o.Compression != CompressionAuto {
		return fault.Fieldf("invalid {Compression} value %q, expected (gzip|zstd|auto)", o.Compression)
	}
	return nil
}

// normalize sets defaults and refuses contradictory options, before any work.
func (o *Options) normalize() error {
	if o.Ready != nil {
		if err := o.Ready(); err != nil {
			return err
		}
	}
	if o.Dir == "" {
		return errors.New("no directory for the layers")
	}
	o.Format = cmp.Or(o.Format, FormatOCI)
	o.Compression = cmp.Or(o.Compression, layers.Gzip)
	o.MaxLayers = cmp.Or(o.MaxLayers, defaultMaxLayers)
	o.Jobs = cmp.Or(max(o.Jobs, 0), runtime.GOMAXPROCS(0))
	o.Platform = platform.Complete(o.Platform)
	if err := o.Check(); err != nil {
		return err
	}
	switch {
	case o.Format == FormatDocker && o.Compression == CompressionAuto:
		return errors.New("the docker format supports gzip only: use --compression gzip, or --format oci for auto")
	case o.Format == FormatDocker && o.Compression == layers.Zstd:
		return errors.New("the docker format supports gzip only: use --compression gzip, or --format oci for zstd")
	case o.Format == FormatDocker && len(o.Annotations) > 0:
		return errors.New("the docker format has no annotations: use labels, or --format oci")
	case o.serverOf != nil && len(o.Servers) > 0:
		return errors.New("more than one server option is set")
	case o.useBaseServer && o.Base == nil:
		return errors.New("no base image to take the server from")
	}
	if err := o.checkLabels(); err != nil {
		return err
	}
	o.program = "/" + cataloglayer.ServerPath
	if err := o.caches.Check(); err != nil {
		return err
	}
	if o.Compression == CompressionAuto {
		return nil
	}
	_, err := layerType(o.Format, o.Compression)
	return err
}

// checkLayers refuses an image with too many layers.
func (o *Options) checkLayers(n int) error {
	if n > o.MaxLayers {
		return fmt.Errorf("the image would have %d layers (limit %d)", n, o.MaxLayers)
	}
	return nil
}

// platforms returns the platforms of the image.
func (o *Options) platforms() []v1.Platform {
	if len(o.Servers) == 0 {
		if len(o.severalPlatforms) > 0 {
			return o.severalPlatforms
		}
		return []v1.Platform{o.Platform}
	}
	ps := make([]v1.Platform, len(o.Servers))
	for i, s := range o.Servers {
		ps[i] = s.Platform
	}
	return ps
}

func (o *Options) created() time.Time {
	if o.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return o.Created.UTC().Truncate(time.Second)
}

func (o *Options) layerOptions() layers.Options {
	return layers.Options{Compression: o.Compression}
}

// ServeCache is a kind of serve cache in an image.
type ServeCache string

// The kinds of serve caches.
const (
	// ServeCacheNative is that of this project's server: a file for each package, in the package's layer.
	ServeCacheNative ServeCache = "native"
	// ServeCacheJSON and ServeCachePogreb are opm's, for images that opm serves. They use the same directory: only one
	// of them is possible.
	ServeCacheJSON   ServeCache = "opm-json"
	ServeCachePogreb ServeCache = "opm-pogreb"
)

// SetServeCaches sets the serve caches of the image. Without any the server reads the catalog when it starts.
func (o *Options) SetServeCaches(kinds ...ServeCache) error {
	o.caches = cataloglayer.Caches{}
	for _, k := range kinds {
		switch k {
		case ServeCacheNative:
			o.caches.Native, o.caches.NativeID = cataloglayer.Native, serve.CacheID()
		case ServeCacheJSON:
			o.caches.Extra = append(o.caches.Extra, cataloglayer.JSON())
		case ServeCachePogreb:
			o.caches.Extra = append(o.caches.Extra, cataloglayer.Pogreb())
		default:
			return fmt.Errorf("unknown serve cache %q", k)
		}
	}
	return o.caches.Check()
}

// extraDir is the cache directory passed to the server; empty for the native cache or none. A base's server does not
// support the native cache.
func (o *Options) extraDir() string {
	if len(o.caches.Extra) == 0 || o.caches.Native != nil && len(o.Servers) > 0 {
		return ""
	}
	return o.caches.Extra[0].Dir
}
