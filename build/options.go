package build

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

// Options configure a build. Dir is required; the zero value of everything else is useful.
type Options struct {
	// Dir is a private directory for the files of the layers. It must exist until the image has been copied; an
	// images.Workspace is made for this.
	Dir string
	// Format is OCI if empty.
	Format Format
	// Compression is gzip if empty, and can be [CompressionAuto]. Docker's format supports gzip only.
	Compression layers.Compression
	// Base is the base image; nil means an empty root. System configures access to it.
	Base   types.ImageReference
	System *types.SystemContext
	// Servers are the server programs, one for each platform of the image. Without one the image is for Platform and
	// needs a base with a server, or a cluster that provides one.
	Servers []Server
	// ServerLayers, unless nil, has finished layers of servers.
	ServerLayers *ServerLayers
	// Platform is that of an image without servers; linux/amd64 if empty. Platforms replaces it for several platforms.
	Platform  v1.Platform
	Platforms []v1.Platform
	// ServerOf, unless nil, prefers the server of the base: if the base's configuration starts a program called opm on
	// each of Platforms, the image gets neither another server nor a cache, which the base's server would not support.
	// Otherwise ServerOf is called for the server of each of Platforms. Servers must then be empty.
	ServerOf func(v1.Platform) (Server, error)
	// BaseServer declares that the base has a server at /bin/opm, regardless of its configuration.
	BaseServer bool
	// Labels and Annotations override those of the base and of the catalog.
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
	// Cache returns the serve cache of one package, a file in /cache; nil means no cache. It is called concurrently for
	// different packages and must be a pure function.
	Cache func(PackageCatalog) (CacheFile, error)
	// Extra are caches for servers other than that of the image.
	Extra []ExtraCache
	// CacheID identifies the inputs of Cache other than the catalog: the format and the program. Without it, layers
	// with a Cache are not cached.
	CacheID string
	// Known, unless nil, has layers of earlier builds. The input must then not change until the image is closed, see
	// [Image.NeedsInput].
	Known *Known
	// Warn, unless nil, is called with warnings about the content of layers; calls do not overlap.
	Warn func(string)
	// Events, unless nil, is called with each layer that was written or found in the cache; calls do not overlap.
	Events func(Layer)

	purpose purpose
	program string // the server program in the image
}

// defaultMaxLayers stays below the limit of container engines.
const defaultMaxLayers = 100

// normalize sets defaults and refuses contradictory options, before any work.
func (o *Options) normalize() error {
	if o.Dir == "" {
		return errors.New("no directory for the layers")
	}
	o.Format = cmp.Or(o.Format, FormatOCI)
	o.Compression = cmp.Or(o.Compression, layers.Gzip)
	o.MaxLayers = cmp.Or(o.MaxLayers, defaultMaxLayers)
	o.Jobs = cmp.Or(max(o.Jobs, 0), runtime.GOMAXPROCS(0))
	o.Platform.OS = cmp.Or(o.Platform.OS, "linux")
	o.Platform.Architecture = cmp.Or(o.Platform.Architecture, "amd64")
	switch {
	case o.Format != FormatOCI && o.Format != FormatDocker:
		return fmt.Errorf("unknown format %q: expected oci or docker", o.Format)
	case o.Format == FormatDocker && o.Compression == CompressionAuto:
		return errors.New("the docker format supports gzip only: use --compression gzip, or --format oci for auto")
	case o.Format == FormatDocker && o.Compression == layers.Zstd:
		return errors.New("the docker format supports gzip only: use --compression gzip, or --format oci for zstd")
	case o.Format == FormatDocker && len(o.Annotations) > 0:
		return errors.New("the docker format has no annotations: use labels, or --format oci")
	case o.ServerOf != nil && len(o.Servers) > 0:
		return errors.New("more than one server option is set")
	case o.BaseServer && o.Base == nil:
		return errors.New("no base image to take the server from")
	}
	if err := o.checkLabels(); err != nil {
		return err
	}
	o.program = "/" + serverPath
	if err := o.checkExtra(); err != nil {
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
		if len(o.Platforms) > 0 {
			return o.Platforms
		}
		return []v1.Platform{o.Platform}
	}
	ps := make([]v1.Platform, len(o.Servers))
	for i, s := range o.Servers {
		ps[i] = s.Platform
	}
	return ps
}

// created returns the time of the image.
func (o *Options) created() time.Time {
	if o.Created.IsZero() {
		return time.Unix(0, 0).UTC()
	}
	return o.Created.UTC().Truncate(time.Second)
}

// layerOptions returns the options of every layer.
func (o *Options) layerOptions() layers.Options {
	return layers.Options{Compression: o.Compression}
}
