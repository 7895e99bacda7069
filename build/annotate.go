package build

import (
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/layers"
)

// The annotations of the layers of an image, on their descriptors in its manifest. They describe the layers without
// reading them: their packages and the key of their content. The docker format has no annotations.
const (
	// AnnotationKind is the [LayerKind].
	AnnotationKind = "io.github.operator-bindery.layer.kind"
	// AnnotationPackages are the packages of the layer, sorted and separated by commas.
	AnnotationPackages = "io.github.operator-bindery.layer.packages"
	// AnnotationKey is the key of the content: layers with the same key have the same bytes. See [Layer.Key].
	AnnotationKey = "io.github.operator-bindery.layer.key"
	// AnnotationContent is the length of the packages' catalogs in bytes, uncompressed and without caches: by it
	// packages are divided into layers where these are not read. See [Layer.Content].
	AnnotationContent = "io.github.operator-bindery.layer.content"
)

// annotations are those of the layer's descriptor; nil for a layer of a base, and for one of which nothing is known but
// that it has files.
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
		a[AnnotationContent] = strconv.FormatInt(l.Content, 10)
	}
	return a
}

// Previous is the description of the layers of an earlier catalog image. [previousOf] reads it.
type Previous struct {
	// Groups are the packages of each layer, each sorted. The empty name stands for the blobs of no package.
	Groups [][]string
	// layers are the finished layers by the keys of their contents.
	layers map[digest.Digest]layers.Blob
	// Trusted allows Layers to be reused for contents with the same key without comparing them, although others may be
	// able to write to the registry. Otherwise they are only sources for mounting layers.
	Trusted bool
	// repository is where a registry has them, "HOST/REPOSITORY"; empty if it is no registry.
	repository string
}
