package sqlite

import (
	"math"
	"sort"

	"github.com/operator-bindery/bindery/declcfg"
)

// edges are the upgrade edges of one bundle in one channel.
type edges struct {
	replaces string
	skips    []string
}

// node is a bundle in a channel.
type node struct{ channel, bundle string }

// readEdges distinguishes replaced bundles from skipped ones. The table does not: both are entries with a reference to
// another entry. An entry of the chain of its channel replaces the entry that it refers to, any other entry skips it.
func (g *graph) readEdges(p *pkg, c Compat) map[node]*edges {
	chained := g.chains(p, g.tips(p, c))
	out := map[node]*edges{}
	for _, e := range p.entries {
		n := node{e.channel, e.bundle}
		if out[n] == nil {
			out[n] = &edges{}
		}
		switch to := g.entries[e.replaces]; {
		case to == nil: // the end of a chain, or a bundle that is only skipped
		case chained[e.id]:
			out[n].addReplaced(to.bundle, c)
		default:
			out[n].skips = append(out[n].skips, to.bundle)
		}
	}
	return out
}

// addReplaced adds a bundle that is replaced. A bundle replaces one other: of several, opm uses the last by name, and
// the others count as skipped except with CompatOPM.
func (e *edges) addReplaced(bundle string, c Compat) {
	if e.replaces == "" || e.replaces == bundle {
		e.replaces = bundle
		return
	}
	last, other := max(e.replaces, bundle), min(e.replaces, bundle)
	e.replaces = last
	if c != CompatOPM {
		e.skips = append(e.skips, other)
	}
}

// tips returns the depth at which the chain of each channel begins: the least that its entries have. opm uses the least
// depth of the whole database, and so reads the chain of a channel that begins deeper as skips; this is done only with
// CompatOPM.
func (g *graph) tips(p *pkg, c Compat) map[string]int64 {
	tips := map[string]int64{}
	for _, e := range p.entries {
		if d, ok := tips[e.channel]; e.depth != none && (!ok || e.depth < d) {
			tips[e.channel] = e.depth
		}
	}
	if c != CompatOPM {
		return tips
	}
	least := int64(math.MaxInt64)
	for _, e := range g.order {
		if e.depth != none {
			least = min(least, e.depth)
		}
	}
	for channel := range tips {
		tips[channel] = least
	}
	return tips
}

// chains returns the ids of the entries in the chains of replaced bundles: those at the tip of their channel, and what
// these lead to. Entries that represent a skip are not reached from there.
func (g *graph) chains(p *pkg, tips map[string]int64) map[int64]bool {
	chained := map[int64]bool{}
	for _, e := range p.entries {
		if tip, ok := tips[e.channel]; !ok || e.depth != tip {
			continue
		}
		for e != nil && !chained[e.id] {
			chained[e.id] = true
			e = g.entries[e.replaces]
		}
	}
	return chained
}

// channelBlobs builds the channels of a package with the entries of their bundles.
func (g *graph) channelBlobs(p *pkg, edges map[node]*edges, included map[string]bool) []declcfg.Channel {
	byChannel := map[string][]declcfg.ChannelEntry{}
	for n, e := range edges {
		if p.channels[n.channel] == nil || !included[n.bundle] {
			continue
		}
		byChannel[n.channel] = append(byChannel[n.channel], declcfg.ChannelEntry{
			Name: n.bundle, Replaces: e.replaces, Skips: e.skips, SkipRange: g.bundles[n.bundle].skipRange.s,
		})
	}
	var out []declcfg.Channel
	for _, name := range sortedKeys(p.channels) {
		entries := byChannel[name]
		sort.Slice(entries, func(i, j int) bool { return entries[i].Name < entries[j].Name })
		out = append(out, declcfg.Channel{Name: name, Package: p.name, Entries: entries})
	}
	return out
}
