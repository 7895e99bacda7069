package appregistry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Wish holds the upgrade edges that a ClusterServiceVersion declares for its bundle.
type Wish struct {
	Replaces  string
	Skips     []string
	SkipRange string
}

// WishOf reads the edges from a ClusterServiceVersion in JSON. Fields of an unexpected type are ignored.
func WishOf(csv []byte) Wish { return wishOf(declcfg.ReadCSV(csv)) }

func wishOf(c *declcfg.CSV) Wish {
	o := c.Origin()
	return Wish{Replaces: o.Replaces, Skips: o.Skips, SkipRange: c.SkipRange()}
}

// maxEdges bounds the entries and skips of all channels of all packages.
const maxEdges = 1_000_000

// Graph builds the channels of a package, sorted by name, as opm does: starting from the head, each bundle replaces and
// skips what its ClusterServiceVersion declares, until one replaces nothing. A skipped bundle is in the channel without
// edges. bundles are the existing bundles by name; skipped ones need not exist.
//
// The problems name the package, not the file. Channels with problems are left out.
func (m Manifest) Graph(bundles map[string]Wish) ([]declcfg.Channel, []Problem) {
	edges := 0
	return m.graph(bundles, &edges)
}

// graph is like [Manifest.Graph], for one of several packages; edges counts the edges of all of them.
func (m Manifest) graph(bundles map[string]Wish, edges *int) ([]declcfg.Channel, []Problem) {
	g := &grapher{m: m, bundles: bundles, edges: edges}
	seen := map[string]bool{}
	var out []declcfg.Channel
	for _, c := range m.Channels {
		switch {
		case c.Name == "":
			g.wrong("a channel has no name")
			continue
		case seen[c.Name]:
			g.wrong("channel %s is there twice", fault.Quote(c.Name))
			continue
		}
		seen[c.Name] = true
		if entries, ok := g.entries(c); ok {
			out = append(out, declcfg.Channel{Name: c.Name, Package: m.Package, Entries: entries})
		}
	}
	switch name := m.Default(); {
	case len(m.Channels) == 0:
		g.wrong("package %s has no channels", fault.Quote(m.Package))
	case name == "":
		g.wrong("no default channel specified for %s", fault.Quote(m.Package))
	case !seen[name]:
		g.wrong("the default channel %s of package %s is none of its channels", fault.Quote(name),
			fault.Quote(m.Package))
	}
	slices.SortFunc(out, func(a, b declcfg.Channel) int { return cmp.Compare(a.Name, b.Name) })
	return out, g.problems
}

// grapher builds the channels of one package.
type grapher struct {
	m        Manifest
	bundles  map[string]Wish
	edges    *int
	problems []Problem
}

func (g *grapher) wrong(format string, args ...any) {
	g.problems = append(g.problems,
		Problem{Text: fmt.Sprintf(format, args...), Err: ErrInvalid})
}

// entries follows the replaces chain of a channel from its head and reports whether it ended without a problem.
func (g *grapher) entries(c ManifestChannel) ([]declcfg.ChannelEntry, bool) {
	if _, ok := g.bundles[c.CurrentCSV]; !ok {
		g.wrong("channel %s: its currentCSV %s is not among the manifests", fault.Quote(c.Name),
			fault.Quote(c.CurrentCSV))
		return nil, false
	}
	chain := map[string]declcfg.ChannelEntry{}
	skipped := map[string]bool{}
	for at := c.CurrentCSV; ; {
		w := g.bundles[at]
		if *g.edges += 1 + len(w.Skips); *g.edges > maxEdges {
			g.problems = append(g.problems, Problem{Err: ErrLimit,
				Text: fmt.Sprintf("channel %s of package %s: more than %d entries and skips in all channels",
					fault.Quote(c.Name), fault.Quote(g.m.Package), maxEdges)})
			return nil, false
		}
		e := declcfg.ChannelEntry{Name: at, Replaces: w.Replaces, SkipRange: w.SkipRange}
		own := map[string]bool{}
		for _, s := range w.Skips {
			if s != "" && !own[s] {
				e.Skips = append(e.Skips, s)
			}
			own[s], skipped[s] = true, true
		}
		chain[at] = e
		if w.Replaces == "" {
			break
		}
		if _, ok := chain[w.Replaces]; ok {
			g.wrong("channel %s: Cycle detected, %s replaces %s", fault.Quote(c.Name), at, w.Replaces)
			return nil, false
		}
		if _, ok := g.bundles[w.Replaces]; !ok {
			g.wrong("channel %s: Invalid bundle %s, replaces nonexistent bundle %s", fault.Quote(c.Name), at,
				w.Replaces)
			return nil, false
		}
		at = w.Replaces
	}
	for name := range skipped {
		w, there := g.bundles[name]
		if _, ok := chain[name]; there && !ok {
			chain[name] = declcfg.ChannelEntry{Name: name, SkipRange: w.SkipRange}
		}
	}
	byName := func(a, b declcfg.ChannelEntry) int { return cmp.Compare(a.Name, b.Name) }
	return slices.SortedFunc(maps.Values(chain), byName), true
}
