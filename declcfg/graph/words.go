package graph

import (
	"fmt"
	"strings"
)

// words returns the text of a row: the name with its version emphasised, the channels of which the bundle is the head,
// the notes.
func (r *row) words() []word {
	out := r.nameWords()
	first := true
	heads := 0
	for _, n := range r.nodes {
		if !n.head {
			continue
		}
		if heads++; heads > maxListed+2 {
			continue
		}
		if first {
			out = append(out, word{"head of ", "note", true})
		} else {
			out = append(out, word{", ", "note", false})
		}
		first = false
		out = append(out, word{n.lane.label(), fmt.Sprintf("head h%d", n.lane.index%hues), false})
	}
	if more := heads - maxListed - 2; more > 0 {
		out = append(out, word{fmt.Sprintf(" and %d more", more), "note", false})
	}
	for _, n := range r.notes() {
		class := "note"
		if n.strong {
			class = "warn"
		}
		out = append(out, word{n.text, class, true})
	}
	return out
}

// nameWords returns the name of a bundle with its version emphasised; a version that is not in the name follows it.
func (r *row) nameWords() []word {
	name := shown(r.name, maxName)
	class := "b"
	if r.bundle == nil {
		class = "absent"
	}
	if !r.versioned {
		return []word{{name, class, false}}
	}
	version := r.version.String()
	i := strings.LastIndex(name, version)
	if i < 0 {
		return []word{{name + " ", class, false}, {clip(version, maxName/2), "v", false}}
	}
	var out []word
	for _, w := range []word{{name[:i], class, false}, {version, "v", false}, {name[i+len(version):], class, false}} {
		if w.text != "" {
			out = append(out, w)
		}
	}
	return out
}

// tag returns the label of a row in front of many lanes: its version.
func (r *row) tag() string {
	if !r.versioned {
		return ""
	}
	return clip(r.version.String(), maxTag)
}
