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

// declared is what an image declares about one of its layers.
type declared struct {
	kind     string
	packages []string
	key      digest.Digest
	// annotated reports whether the layer's descriptor declares it, and not the history.
	annotated bool
}

// ours reports whether the layer is declared to have been built by this module.
func (s declared) ours() bool { return s.kind != "" && s.kind != string(build.LayerBase) }

// declaredLayers is what an image says of its layers: in the annotations of their descriptors, or, if none has any as in the docker
// format, in its history. A layer without either, below others that have it, is one of the base, and so is everything
// below a layer that hides a base's catalog: the base may have been built here as well.
func declaredLayers(i *images.Image) []declared {
	out := make([]declared, len(i.Layers))
	annotated := slices.ContainsFunc(i.Layers, func(l v1.Descriptor) bool { return l.Annotations[build.AnnotationKind] != "" })
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

// fromAnnotations reads what [build] writes to the descriptor of a layer.
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

// made is one entry of an image's history that made a layer.
type made struct{ by, comment string }

// historyOf are the entries of the history that made layers; nil if there is not one for each.
func historyOf(i *images.Image) []made {
	var out []made
	for _, h := range i.Config.History {
		if !h.EmptyLayer {
			out = append(out, made{h.CreatedBy, h.Comment})
		}
	}
	if len(out) != len(i.Layers) {
		return nil
	}
	return out
}

// fromHistory reads what [build] writes into the history.
func fromHistory(h made, labels map[string]string) declared {
	if !slices.Contains([]string{"bindery build catalog", "bindery build bundle", "bindery index", "bindery build compose"}, h.by) {
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
