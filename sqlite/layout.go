package sqlite

import (
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// row is a row of channel_entry to be written.
type row struct {
	id       int64
	channel  string
	bundle   string
	replaces *row
	depth    int64
}

// layout creates the rows of channel_entry of one package: the inverse of readEdges.
//
// The head of a channel comes first, at depth 0, followed by its replaces chain at increasing depths. A skip is two
// rows of the same depth, between an entry and the one it replaces: one for the skipped bundle, and one more for the
// skipping bundle, which refers to the former. opm writes the same rows. It has no rows for graphs that only file-based
// catalogs can express; for those the rows are chosen so that readers compute the right edges:
//
//   - An entry that replaces something but is not reachable by replaces from the head (the head skips it) begins a
//     separate chain at depth 0. Readers treat everything that begins there as chains.
//   - A bundle that is replaced or skipped in a channel without being a member, but is a member of another channel of
//     the package, gets no row in the former, which would make it a member. The reference leads to its row in the
//     latter.
//   - A bundle that is not in the package gets a row without a bundle. opm writes those for skips.
type layout struct {
	nextID   int64
	rows     []*row
	channels []*channelLayout
	members  map[string]bool // the bundles of all channels
	pending  []reference
}

// reference is an edge to a bundle of another channel.
type reference struct {
	from *row
	to   string
}

type channelLayout struct {
	*layout
	name    string
	entries map[string]*declcfg.ChannelEntry
	order   []string
	head    string
	chain   map[string]*row // the rows of bundles that replace another, and of ends of chains
	other   map[string]*row // rows of skipped bundles
}

// newLayout lays out the channels of a valid package. heads[i] is the head of channels[i], and firstID the id of the
// first row.
func newLayout(firstID int64, channels []declcfg.Channel, heads []string) *layout {
	l := &layout{nextID: firstID, members: map[string]bool{}}
	for i := range channels {
		c := &channelLayout{layout: l, name: channels[i].Name, head: heads[i],
			entries: map[string]*declcfg.ChannelEntry{}, chain: map[string]*row{}, other: map[string]*row{}}
		for j := range channels[i].Entries {
			c.entries[channels[i].Entries[j].Name] = &channels[i].Entries[j]
			l.members[channels[i].Entries[j].Name] = true
		}
		c.order = slices.Sorted(maps.Keys(c.entries))
		l.channels = append(l.channels, c)
	}
	for _, c := range l.channels {
		c.lay()
	}
	for _, p := range l.pending {
		p.from.replaces = l.rowOf(p.to)
	}
	return l
}

// lay creates the rows of one channel.
func (c *channelLayout) lay() {
	c.walk(c.head)
	replaced := map[string]bool{}
	for _, name := range c.order {
		if c.chain[name] == nil {
			replaced[c.entries[name].Replaces] = true
		}
	}
	// First the chains without a predecessor, then the remaining cycles.
	for _, circles := range []bool{false, true} {
		for _, name := range c.order {
			if c.chain[name] == nil && c.entries[name].Replaces != "" && (circles || !replaced[name]) {
				c.walk(name)
			}
		}
	}
	for _, name := range c.order {
		if c.chain[name] != nil {
			continue
		}
		depth := int64(1)
		for _, skip := range c.entries[name].Skips {
			c.skip(name, skip, depth)
			depth++
		}
	}
	for _, name := range c.order {
		if c.chain[name] == nil && c.other[name] == nil {
			c.other[name] = c.add(name, 1)
		}
	}
}

// walk creates the rows of a chain up to its end, or until it joins another chain.
func (c *channelLayout) walk(name string) {
	var from *row
	depth := int64(0)
	for {
		if met := c.chain[name]; met != nil {
			from.replaces = met
			return
		}
		e := c.entries[name]
		if e == nil {
			c.refer(from, name, depth)
			return
		}
		r := c.add(name, depth)
		c.chain[name] = r
		if from != nil {
			from.replaces = r
		}
		depth++
		for _, skip := range e.Skips {
			c.skip(name, skip, depth)
			depth++
		}
		if e.Replaces == "" {
			return
		}
		from, name = r, e.Replaces
	}
}

// skip creates the rows of a skip.
func (c *channelLayout) skip(name, skip string, depth int64) {
	if c.entries[skip] == nil && c.members[skip] {
		c.pending = append(c.pending, reference{c.add(name, depth), skip})
		return
	}
	to := c.add(skip, depth)
	if c.other[skip] == nil {
		c.other[skip] = to
	}
	c.add(name, depth).replaces = to
}

// refer creates an edge to a bundle that is not in the channel.
func (c *channelLayout) refer(from *row, to string, depth int64) {
	if c.members[to] {
		c.pending = append(c.pending, reference{from, to})
		return
	}
	if c.other[to] == nil {
		c.other[to] = c.add(to, depth)
	}
	from.replaces = c.other[to]
}

func (c *channelLayout) add(bundle string, depth int64) *row {
	r := &row{id: c.nextID, channel: c.name, bundle: bundle, depth: depth}
	c.nextID++
	c.rows = append(c.rows, r)
	return r
}

// rowOf returns a row of a bundle in a channel that it belongs to, but not one that represents a skip: readers would
// count that as part of the chain.
func (l *layout) rowOf(bundle string) *row {
	var other *row
	for _, c := range l.channels {
		if c.entries[bundle] == nil {
			continue
		}
		if r := c.chain[bundle]; r != nil {
			return r
		}
		if other == nil {
			other = c.other[bundle]
		}
	}
	return other
}
