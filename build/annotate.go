package build

import (
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/layers"
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
