package inspect

import (
	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
)

// LayerKinds returns what each layer of an image is declared to be, the lowest first. [build.LayerBase], or nothing, is
// that of layers that are not declared to be built by bindery: those of a base image, of a Containerfile, and of images
// that other programs have built. [Examine] proves the declarations.
func LayerKinds(i *images.Image) []build.LayerKind {
	var out []build.LayerKind
	for _, d := range declaredLayers(i) {
		out = append(out, build.LayerKind(d.kind))
	}
	return out
}
