package inspect

import (
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/serve/opmcache"
)

// declared is what the image's metadata claims about one of its layers.
type declared struct {
	kind     string
	packages []string
	key      digest.Digest
	// annotated reports whether the claim is in the annotations of the descriptor, not in the history.
	annotated bool
}

// ours reports whether the layer is declared to be built by bindery.
func (s declared) ours() bool { return s.kind != "" && s.kind != string(build.LayerBase) }

// declaredLayers returns the claims about each layer: from the annotations of the descriptors, or from the history if
// no descriptor has any, as in the docker format. A layer without a claim below a layer with one belongs to the base
// image. So does every layer below a reset layer, which hides the catalog of the base: the base may be a bindery image
// too.
func declaredLayers(i *images.Image) []declared {
	out := make([]declared, len(i.Layers))
	annotated := slices.ContainsFunc(i.Layers,
		func(l v1.Descriptor) bool { return l.Annotations[build.AnnotationKind] != "" })
	history := historyOf(i)
	above, begin := -1, 0
	for n, l := range i.Layers {
		switch {
		case annotated:
			out[n] = fromAnnotations(l.Annotations)
		case n < len(history):
			out[n] = fromHistory(history[n], i.Config.Config.Labels)
		}
		if out[n].ours() {
			above = n
		}
		if out[n].kind == string(build.LayerReset) {
			begin = n
		}
	}
	for n := range out {
		if n < begin && !annotated || n < above && out[n].kind == "" {
			out[n] = declared{kind: string(build.LayerBase)}
		}
	}
	return out
}

// fromAnnotations reads the annotations that [build] writes to the descriptor of a layer.
func fromAnnotations(a map[string]string) declared {
	s := declared{kind: a[build.AnnotationKind]}
	if s.annotated = s.kind != ""; !s.annotated {
		return declared{}
	}
	s.key = digest.Digest(a[build.AnnotationKey])
	if list := a[build.AnnotationPackages]; list != "" {
		s.packages = strings.Split(list, ",")
	}
	return s
}

// layerHistory is the history entry of one layer.
type layerHistory struct{ by, comment string }

// historyOf returns the history entries of the layers; nil if their number differs from that of the layers.
func historyOf(i *images.Image) []layerHistory {
	var out []layerHistory
	for _, h := range i.Config.History {
		if !h.EmptyLayer {
			out = append(out, layerHistory{h.CreatedBy, h.Comment})
		}
	}
	if len(out) != len(i.Layers) {
		return nil
	}
	return out
}

// fromHistory reads a history entry as [build] writes it.
func fromHistory(h layerHistory, labels map[string]string) declared {
	if !slices.Contains([]string{"bindery build catalog", "bindery build bundle", "bindery index",
		"bindery build compose"}, h.by) {
		return declared{}
	}
	at := clean(h.comment)
	switch rest, catalog := strings.CutPrefix(h.comment, "/configs"); {
	case h.comment == "/bin/opm":
		return declared{kind: string(build.LayerServer)}
	case strings.HasPrefix(h.comment, "without the "):
		return declared{kind: string(build.LayerReset)}
	case h.comment == "/"+opmcache.Dir:
		return declared{kind: string(build.LayerCache)}
	case h.comment == "/database/index.db":
		return declared{kind: string(build.LayerDatabase)}
	case h.by == "bindery build bundle" && at != "" && at == clean(labels[bundle.AnnotationManifests]):
		return declared{kind: string(build.LayerManifests)}
	case h.by == "bindery build bundle" && at != "" && at == clean(labels[bundle.AnnotationMetadata]):
		return declared{kind: string(build.LayerMetadata)}
	case h.by == "bindery build bundle":
		return declared{kind: string(build.LayerTests)}
	case catalog:
		s := declared{kind: string(build.LayerPackages)}
		if one, ok := strings.CutPrefix(rest, "/"); ok {
			s.packages = []string{one}
		} else if several, ok := strings.CutPrefix(rest, ": "); ok {
			s.packages = strings.Split(several, ", ")
		}
		return s
	}
	return declared{}
}
