package build

import (
	"strconv"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/layers"
)

// The annotations of the layers of an image, on their descriptors in its manifest. They say everything about the layers
// that does not need the layers: which packages they hold, and what they were made from. The docker format has no
// annotations.
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

// Previous is what an earlier image of a catalog says about its layers. [PreviousOf] reads it.
type Previous struct {
	// Groups are the packages of each layer, each sorted. The empty name stands for the blobs of no package.
	Groups [][]string
	// Layers are the finished layers by the keys of their contents.
	Layers map[digest.Digest]layers.Blob
	// Trusted says that Layers may stand for the contents by whose keys they go, although they were not compared: what
	// a registry has may be written by others. Otherwise they only say where a registry has layers already.
	Trusted bool
	// Repository is where a registry has them, "HOST/REPOSITORY"; empty if it is no registry.
	Repository string
}
