package inspect

import (
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/images"
)

// said is what an image says of one of its layers.
type said struct {
	kind     string
	packages []string
	key      digest.Digest
	// annotated tells whether the layer's descriptor says it; otherwise it was the history, if it was anything.
	annotated bool
}

// ours tells whether the layer is said to have been built by this module.
func (s said) ours() bool { return s.kind != "" && s.kind != string(build.LayerBase) }

// saidOf is what an image says of its layers: in the annotations of their descriptors, or, in the docker format, in its
// history. A layer without either, below others that have it, is one of the base.
func saidOf(i *images.Image) []said {
	out := make([]said, len(i.Layers))
	history := historyOf(i)
	some := false
	for n, l := range i.Layers {
		if kind, ok := l.Annotations[build.AnnotationKind]; ok {
			out[n] = said{kind: kind, annotated: true, key: digest.Digest(l.Annotations[build.AnnotationKey])}
			if list := l.Annotations[build.AnnotationPackages]; list != "" {
				out[n].packages = strings.Split(list, ",")
			}
		} else if n < len(history) {
			out[n] = fromHistory(history[n])
		}
		some = some || out[n].ours()
	}
	last := len(out) - 1
	for last >= 0 && !out[last].ours() {
		last--
	}
	for n := range out {
		if some && out[n].kind == "" && n < last {
			out[n].kind = string(build.LayerBase)
		}
	}
	return out
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
func fromHistory(h made) said {
	if !slices.Contains([]string{"bindery build catalog", "bindery build bundle", "bindery index", "bindery build compose"}, h.by) {
		return said{}
	}
	switch rest, catalog := strings.CutPrefix(h.comment, "/configs"); {
	case h.comment == "/bin/opm":
		return said{kind: string(build.LayerServer)}
	case strings.HasPrefix(h.comment, "without the "):
		return said{kind: string(build.LayerReset)}
	case h.comment == "/database/index.db":
		return said{kind: string(build.LayerDatabase)}
	case catalog && h.by != "bindery build bundle":
		s := said{kind: string(build.LayerPackages)}
		if one, ok := strings.CutPrefix(rest, "/"); ok {
			s.packages = []string{one}
		} else if several, ok := strings.CutPrefix(rest, ": "); ok {
			s.packages = strings.Split(several, ", ")
		}
		return s
	}
	return said{}
}
