package inspect

import (
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
)

// Opaque returns the layers of an image that it does not declare to be built by bindery, the lowest first: those of a
// base image, of a Containerfile, and of images that other programs have built. [Examine] proves the declarations.
func Opaque(i *images.Image) []v1.Descriptor {
	var out []v1.Descriptor
	for n, d := range declaredLayers(i) {
		if !d.ours() {
			out = append(out, i.Layers[n])
		}
	}
	return out
}

// ServerLayer tells whether layer n of an image is declared to hold the server and nothing else.
func ServerLayer(i *images.Image, n int) bool {
	return declaredLayers(i)[n].kind == string(build.LayerServer)
}
