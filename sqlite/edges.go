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
// another entry. The chain of replaced bundles begins at the entries of least depth, and entries that represent a skip
// are not reachable from there. An entry of that chain replaces the entry it refers to, any other entry skips it.
//
// opm uses the least depth of the whole database, and so reads the chain of a channel that begins deeper as skips; this
// is done only with CompatOPM.
func (g *graph) readEdges(p *pkg, c Compat) map[node]*edges {
	tips := map[string]int64{}
	least := int64(math.MaxInt64)
	for _, e := range p.entries {
		if d, ok := tips[e.channel]; e.depth != none && (!ok || e.depth < d) {
			tips[e.channel] = e.depth
		}
	}
	if c == CompatOPM {
		for _, e := range g.order {
			if e.depth != none {
				least = min(least, e.depth)
			}
		}
		for channel := range tips {
			tips[channel] = least
		}
	}
	chain := map[int64]bool{}
	var queue []*entry
	for _, e := range p.entries {
		if tip, ok := tips[e.channel]; ok && e.depth == tip {
			chain[e.id] = true
			queue = append(queue, e)
		}
	}
	for len(queue) > 0 {
		e := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if next := g.entries[e.replaces]; next != nil && !chain[next.id] {
			chain[next.id] = true
			queue = append(queue, next)
		}
	}
	out := map[node]*edges{}
	for _, e := range p.entries {
		n := node{e.channel, e.bundle}
		if out[n] == nil {
			out[n] = &edges{}
		}
		to := g.entries[e.replaces]
		switch {
		case to == nil:
		case !chain[e.id]:
			out[n].skips = append(out[n].skips, to.bundle)
		case out[n].replaces == "" || out[n].replaces == to.bundle:
			out[n].replaces = to.bundle
		default:
			// A bundle replaces one other. Of several, opm uses the last by name.
			was := out[n].replaces
			out[n].replaces = max(was, to.bundle)
			if c != CompatOPM {
				out[n].skips = append(out[n].skips, min(was, to.bundle))
			}
		}
	}
	return out
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
