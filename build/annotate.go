package build

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/layers"
)

// The labels of images and the annotations of their layers. The annotations are on the descriptors of the layers in the
// manifest, and describe the layers without reading them. The docker format has no annotations.
const (
	// ConfigsLabel is the label with the path of the catalog in an image, DatabaseLabel that with the path of the index
	// database.
	ConfigsLabel  = "operators.operatorframework.io.index.configs.v1"
	DatabaseLabel = "operators.operatorframework.io.index.database.v1"
	// AnnotationKind is the [LayerKind].
	AnnotationKind = "io.github.operator-bindery.layer.kind"
	// AnnotationPackages are the packages of the layer, sorted and separated by commas.
	AnnotationPackages = "io.github.operator-bindery.layer.packages"
	// AnnotationKey is the key of the content: layers with the same key have the same bytes. See [Layer.Key].
	AnnotationKey = "io.github.operator-bindery.layer.key"
	// annotationContent is the size of the packages' catalogs in bytes, uncompressed and without caches. It allows
	// grouping packages into layers without reading them. See [Layer.Content].
	annotationContent = "io.github.operator-bindery.layer.content"
	// AnnotationZstd marks in an index the images with zstd layers. The containers library (podman, CRI-O, skopeo)
	// writes it and prefers those images; other clients use the first image of their platform, which has gzip.
	AnnotationZstd = "io.github.containers.compression.zstd"
)

// annotations returns those of the layer's descriptor; nil for a layer of a base, and for one whose content is unknown.
func (l Layer) annotations() map[string]string {
	if l.Kind == LayerBase || l.Kind == LayerFiles {
		return nil
	}
	a := map[string]string{AnnotationKind: string(l.Kind)}
	if len(l.Packages) > 0 {
		a[AnnotationPackages] = strings.Join(l.Packages, ",")
	}
	if l.Key != "" {
		a[AnnotationKey] = l.Key.String()
	}
	if l.Content > 0 {
		a[annotationContent] = strconv.FormatInt(l.Content, 10)
	}
	return a
}

// Previous is the description of the layers of an earlier catalog image. [ReadPrevious] reads it.
type Previous struct {
	// Groups are the packages of each layer, sorted. The empty name stands for the blobs of no package.
	Groups [][]string
	// layers are the finished layers by the keys of their contents.
	layers map[digest.Digest]layers.Blob
	// Trusted allows Layers to be reused for contents with the same key without comparing them, although others may be
	// able to write to the registry. Otherwise they are only sources for mounting layers.
	Trusted bool
	// repository is where a registry has the layers, "HOST/REPOSITORY"; empty if the image is not in a registry.
	repository string
}

// passingAnnotations are prefixes of annotations about one manifest: its build time and source, and notes of tools.
// They are not inherited.
var passingAnnotations = [...]string{
	v1.AnnotationBaseImageDigest, v1.AnnotationBaseImageName, v1.AnnotationCreated, v1.AnnotationRefName,
	"com.docker.", "vnd.docker.", "containerd.io/", "io.containerd.", "io.buildah.", "io.podman.",
	"io.github.containers.", "dev.cosign", "dev.sigstore.",
}

// inheritable returns the annotations that stay valid in an image built from another.
func inheritable(all map[string]string) map[string]string {
	out := withLabels(all, nil)
	maps.DeleteFunc(out, func(key, _ string) bool {
		return slices.ContainsFunc(passingAnnotations[:],
			func(prefix string) bool { return strings.HasPrefix(key, prefix) })
	})
	return out
}

// inherited returns the labels and annotations of [Options.Source] for a platform: those of the image for the platform,
// else for its architecture in another variant, else of the first image.
func (o *Options) inherited(p v1.Platform) (labels, annotations map[string]string) {
	if o.Source == nil || len(o.Source.Variants) == 0 {
		return nil, nil
	}
	v, best := o.Source.Variants[0], 0
	for _, other := range o.Source.Variants {
		fits := 0
		switch {
		case platform.Equal(other.Platform, p):
			fits = 2
		case platform.MatchesAnyVariant(other.Platform, p):
			fits = 1
		}
		if fits > best {
			v, best = other, fits
		}
	}
	return v.Config.Config.Labels, inheritable(v.Annotations)
}

// manifestAnnotations returns those of the manifest for a platform.
func (o *Options) manifestAnnotations(p v1.Platform, b *base) map[string]string {
	_, annotations := o.inherited(p)
	return o.annotations(withLabels(annotations, b.annotations()))
}

// annotations returns those of the image specification that name the base of an image: the reference by which a
// registry has it, and the digest of its index or manifest, whose platforms all count. A base that is in no registry
// has a digest only: a path of this machine would say nothing elsewhere, and differ from build to build.
func (b *base) annotations() map[string]string {
	if b == nil {
		return nil
	}
	out := map[string]string{v1.AnnotationBaseImageDigest: b.top.String()}
	if b.name != "" {
		out[v1.AnnotationBaseImageName] = b.name
	}
	return out
}

func (o *Options) indexAnnotations() map[string]string {
	if o.Source == nil {
		return o.Annotations
	}
	return o.annotations(inheritable(o.Source.Annotations))
}

// annotations returns all annotations of a manifest or an index: Annotations override inherited ones. The docker format
// has none.
func (o *Options) annotations(inherited map[string]string) map[string]string {
	if o.Format == FormatDocker || len(inherited) == 0 {
		return o.Annotations
	}
	all := maps.Clone(inherited)
	maps.Copy(all, o.Annotations)
	return all
}
