package web

import (
	"strings"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
)

// maxRepeated is how many elements a drawing may draw besides its own, by references to its parts. References within
// parts that are referred to multiply: some lines of them draw billions of elements.
const maxRepeated = 50_000

// svgPart is an element with an id, and what is in it, without the parts in it.
type svgPart struct {
	elements int
	within   []int    // the parts in it
	refers   []string // the ids of the parts that it draws, too
}

// svgParts are the parts of a drawing, of which the first is the whole.
type svgParts struct {
	all  []svgPart
	byID map[string]int // the first one with an id counts, as in browsers
	open []int          // the innermost part around each open element, by its depth
}

// referred is a reference to a part of the drawing, in the value of a property.
var referred = lazyregexp.New(`(?i)url\(\s*["']?#([^"')]*)["']?\s*\)`)

// enter counts an element that is written, which is in depth-1 others.
func (p *svgParts) enter(depth int, attributes []attribute) {
	if p.byID == nil {
		p.all, p.byID = []svgPart{{}}, map[string]int{}
	}
	for len(p.open) < depth { // an element that is not written is in no other part than the one around it
		part := 0
		if n := len(p.open); n > 0 {
			part = p.open[n-1]
		}
		p.open = append(p.open, part)
	}
	p.open = p.open[:depth]
	at := 0
	if depth > 1 {
		at = p.open[depth-2]
	}
	for _, a := range attributes {
		if a.name == "id" {
			p.all = append(p.all, svgPart{})
			part := len(p.all) - 1
			p.all[at].within = append(p.all[at].within, part)
			if at = part; p.byID[a.value] == 0 {
				p.byID[a.value] = part
			}
		}
	}
	p.open[depth-1] = at
	p.all[at].elements++
	for _, a := range attributes {
		if id, ok := strings.CutPrefix(a.value, "#"); ok && a.name == "xlink:href" {
			p.all[at].refers = append(p.all[at].refers, id)
			continue
		}
		if !strings.Contains(a.value, "#") {
			continue // quickly: the line of a path is long
		}
		for _, m := range referred().FindAllStringSubmatch(a.value, -1) {
			p.all[at].refers = append(p.all[at].refers, m[1])
		}
	}
}

// bounded reports whether the drawing draws few more elements than it has. A part that draws itself is not bounded.
func (p *svgParts) bounded() bool {
	own := 0
	for _, part := range p.all {
		own += part.elements
	}
	const open = -1
	most, drawn := own+maxRepeated, make([]int, len(p.all))
	var count func(i int) int
	count = func(i int) int {
		switch {
		case drawn[i] == open:
			return most + 1
		case drawn[i] > 0:
			return drawn[i]
		}
		drawn[i] = open
		n := p.all[i].elements
		for _, part := range p.all[i].within {
			n = min(n+count(part), most+1)
		}
		for _, id := range p.all[i].refers {
			if part := p.byID[id]; part > 0 {
				n = min(n+count(part), most+1)
			}
		}
		drawn[i] = n
		return n
	}
	return len(p.all) == 0 || count(0) <= most
}
