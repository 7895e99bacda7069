package build

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
)

// Option is an option of [New].
type Option func(*Builder) error

// WithPlatforms sets the platforms of the images, such as "linux/amd64" or "linux/arm64/v8"; several make an index.
func WithPlatforms(platforms ...string) Option {
	return func(b *Builder) error {
		b.platforms = nil
		for _, text := range platforms {
			p, err := ParsePlatform(text)
			if err != nil {
				return err
			}
			b.platforms = append(b.platforms, p)
		}
		if len(b.platforms) == 0 {
			b.platforms = defaultPlatforms()
		}
		return nil
	}
}

// WithBase sets the base image by a name that [images.Client.Open] accepts.
func WithBase(name string) Option { return set(func(b *Builder) { b.base = name }) }

// WithServer sets the server of the catalog: [ServerEmbedded], [ServerBase], [ServerNone], or the static program in a
// file, which is for one platform only. Without it the base serves if it starts a server, and the embedded server does
// otherwise. A program that was not built with embedded servers needs this option.
func WithServer(server string) Option { return set(func(b *Builder) { b.server = server }) }

// WithServeCaches sets the serve caches of the image, by default the native one; without kinds there are none.
func WithServeCaches(kinds ...ServeCache) Option { return set(func(b *Builder) { b.caches = kinds }) }

// WithCacheDir caches layers in a directory of this user: an unchanged package is not packed again. The command's is
// $XDG_CACHE_HOME/bindery.
func WithCacheDir(dir string) Option { return set(func(b *Builder) { b.cacheDir = dir }) }

// WithTempDir sets the directory of the temporary files of images, by default the system's.
func WithTempDir(dir string) Option { return set(func(b *Builder) { b.tempDir = dir }) }

// WithClient sets the client that reads base images and previous images, by default one with the configuration of the
// machine. It must be open until the images are closed.
func WithClient(client *images.Client) Option { return set(func(b *Builder) { b.client = client }) }

// WithPrevious keeps the grouping of packages into layers of an earlier image, and mounts layers from its repository.
func WithPrevious(name string) Option { return set(func(b *Builder) { b.previous = name }) }

// WithFormat sets the format of manifests, [FormatOCI] or [FormatDocker].
func WithFormat(f Format) Option { return set(func(b *Builder) { b.o.Format = f }) }

// WithCompression sets the compression of layers, see [Options].
func WithCompression(c layers.Compression) Option {
	return set(func(b *Builder) { b.o.Compression = c })
}

// WithLabels adds labels. It can be given several times.
func WithLabels(labels map[string]string) Option {
	return set(func(b *Builder) { b.o.Labels = withLabels(b.o.Labels, labels) })
}

// WithAnnotations adds annotations of manifests. It can be given several times.
func WithAnnotations(annotations map[string]string) Option {
	return set(func(b *Builder) { b.o.Annotations = withLabels(b.o.Annotations, annotations) })
}

// WithCreated sets the time in the configuration of the image, 1970 by default.
func WithCreated(t time.Time) Option { return set(func(b *Builder) { b.o.Created = t }) }

// WithMaxLayers sets the maximum number of layers; if there are more packages, some share layers.
func WithMaxLayers(n int) Option { return set(func(b *Builder) { b.o.MaxLayers = n }) }

// WithJobs sets the number of layers written concurrently, by default one per processor.
func WithJobs(n int) Option { return set(func(b *Builder) { b.o.Jobs = n }) }

// WithWarn sets a function for warnings about the content of images. For each image, calls do not overlap.
func WithWarn(warn func(string)) Option { return set(func(b *Builder) { b.o.Warn = warn }) }

// set returns an option that cannot fail.
func set(f func(*Builder)) Option {
	return func(b *Builder) error {
		f(b)
		return nil
	}
}

// defaultPlatforms returns linux on the architecture of this machine.
func defaultPlatforms() []v1.Platform {
	return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}
}

// ParsePlatform parses linux/ARCH or linux/ARCH/VARIANT.
func ParsePlatform(text string) (v1.Platform, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" {
		return v1.Platform{}, fmt.Errorf("invalid platform %q, expected linux/ARCH or linux/ARCH/VARIANT", text)
	}
	p := v1.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	return p, nil
}
