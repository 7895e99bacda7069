package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

// graph is the upgrade graph of a channel.
type graph struct {
	*declcfg.Upgrades
	head string
}

// newGraph checks that a channel has exactly one head and no cycle. The errors are those for which oc-mirror fails.
func newGraph(c *declcfg.Channel) (*graph, error) {
	if len(c.Entries) == 0 {
		return nil, fmt.Errorf("it has no entries")
	}
	u := c.Upgrades()
	for i := range c.Entries {
		e := &c.Entries[i]
		if u.Entry(e.Name) != e {
			return nil, fmt.Errorf("it has the entry %s twice", fault.Quote(e.Name))
		}
		if e.Name != "" && e.Replaces == e.Name || slices.Contains(e.Skips, e.Name) {
			return nil, fmt.Errorf("its entry %s replaces or skips itself", fault.Quote(e.Name))
		}
	}
	heads := u.Heads()
	switch {
	case u.Cyclic():
		return nil, fmt.Errorf("detected a cycle in the upgrade graph of the channel")
	case len(heads) > 1:
		return nil, fmt.Errorf("multiple channel heads found: [%s]", few(heads))
	}
	return &graph{u, heads[0]}, nil
}

// few returns the first of many names.
func few(names []string) string {
	const most = 10
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], " "), more)
	}
	return strings.Join(names, " ")
}

// within returns the entries of the channel to keep for a range of versions: a part of the chain of replaces, from the
// lowest entry that has all bundles of the range at or below it, down to the lowest one with such a bundle, and what
// these entries skip within the range. The entries between stay even if they are outside of the range: without them the
// channel would have several heads. in reports whether a name is a bundle within the range.
func (g *graph) within(in func(name string) bool) map[string]bool {
	chain, _ := g.Chain(g.head, nil)
	// count[i] is how many bundles of the range are chain[i], below it, or skipped by these.
	count := make([]int, len(chain)+1)
	counted := map[string]bool{}
	for i, name := range slices.Backward(chain) {
		count[i] = count[i+1]
		for _, name := range append([]string{name}, g.skips(name)...) {
			if in(name) && !counted[name] {
				counted[name] = true
				count[i]++
			}
		}
	}
	keep := map[string]bool{}
	if count[0] == 0 {
		return keep
	}
	top := 0
	for count[top+1] == count[0] {
		top++
	}
	for i := top; i < len(chain) && count[i] > 0; i++ {
		keep[chain[i]] = true
		for _, name := range g.skips(chain[i]) {
			if in(name) {
				keep[name] = true
			}
		}
	}
	return keep
}

func (g *graph) skips(name string) []string {
	if e := g.Entry(name); e != nil {
		return e.Skips
	}
	return nil
}
