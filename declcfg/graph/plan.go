package graph

import (
	"cmp"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/versions"
)

// sheet is the drawing of one package: bundles are rows, the newest first; channels are lanes, side by side.
type sheet struct {
	name        string
	pkg         *declcfg.Package // nil if the catalog has no such blob
	deprecation *string
	lanes       []*lane
	rows        []*row
	byName      map[string]*row
	laneOf      map[string]*lane
	partial     bool             // not all channels are drawn
	away        map[string]*away // the bundles that are only in channels that are not drawn
}

// away is a bundle without an entry in a drawn channel.
type away struct {
	bundle   *declcfg.Bundle
	channels []string // the channels with an entry
}

// row is a bundle, or a missing bundle that channels name.
type row struct {
	name        string
	bundle      *declcfg.Bundle // nil if it is missing in the catalog
	version     declcfg.VersionRelease
	versioned   bool
	deprecation *string
	elsewhere   []string // the channels with an entry for it, if no drawn one has
	index       int
	nodes       []*node // in the order of the lanes
}

// lane is a channel.
type lane struct {
	name        string
	index       int
	isDefault   bool
	deprecation *string
	nodes       []*node // from top to bottom
	heads       int
	versioned   []*node // those of nodes with a version
	byRow       map[*row]*node

	geometry
}

// node is a bundle in a channel.
type node struct {
	lane  *lane
	row   *row
	entry *declcfg.ChannelEntry // nil if only another entry of the channel names the bundle
	head  bool
	// skipped is set if an entry of the channel skips the bundle.
	skipped bool
	// replaces is the replaced bundle; nil if there is none.
	replaces *node
	skips    []*node // from top to bottom, without duplicates
	absent   int     // number of skipped bundles missing in the catalog
	// within are those of the lane's versioned nodes that are in the entry's skipRange.
	within       versions.Matches
	invalidRange bool
}

// sheets builds the sheets of the selected part.
func (o Options) sheets(c *declcfg.Catalog) ([]*sheet, error) {
	chosen, err := o.Select(c)
	if err != nil {
		return nil, err
	}
	if len(o.Channels) == 0 {
		return newSheets(chosen, nil), nil
	}
	all := newSheets(chosen, awayFrom(chosen, c))
	for _, s := range all {
		s.partial = true
	}
	return all, nil
}

// awayFrom returns, by package, the bundles in channels of the whole catalog c that are in no channel of part, which is
// drawn.
func awayFrom(part, c *declcfg.Catalog) map[string]map[string]*away {
	here := map[[2]string]bool{}
	for i := range part.Channels {
		for _, e := range part.Channels[i].Entries {
			here[[2]string{part.Channels[i].Package, e.Name}] = true
		}
	}
	out := map[string]map[string]*away{}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		if here[[2]string{b.Package, b.Name}] {
			continue
		}
		if out[b.Package] == nil {
			out[b.Package] = map[string]*away{}
		}
		out[b.Package][b.Name] = &away{bundle: b}
	}
	for i := range c.Channels {
		ch := &c.Channels[i]
		for _, e := range ch.Entries {
			if a := out[ch.Package][e.Name]; a != nil && !slices.Contains(a.channels, ch.Name) {
				a.channels = append(a.channels, ch.Name)
			}
		}
	}
	return out
}

// newSheets builds the sheets of a catalog, sorted by name. It accepts invalid catalogs, as drawings help to find
// errors. Of repeated items the first is drawn. away are bundles by package that c lacks and that its channels may
// name.
func newSheets(c *declcfg.Catalog, away map[string]map[string]*away) []*sheet {
	p := planner{sheets: map[string]*sheet{}, away: away}
	for i := range c.Packages {
		if s := p.sheetOf(c.Packages[i].Name); s.pkg == nil {
			s.pkg = &c.Packages[i]
		}
	}
	for i := range c.Bundles {
		p.addBundle(&c.Bundles[i])
	}
	var lanes []*lane
	for i := range c.Channels {
		lanes = append(lanes, p.addChannel(&c.Channels[i]))
	}
	p.deprecate(c.Deprecations)
	for i, l := range lanes {
		if l != nil {
			l.link(p.sheetOf(c.Channels[i].Package))
		}
	}
	out := make([]*sheet, 0, len(p.sheets))
	for _, s := range p.sheets {
		s.order()
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b *sheet) int { return cmp.Compare(a.name, b.name) })
	return out
}

type planner struct {
	sheets map[string]*sheet
	away   map[string]map[string]*away
}

func (p *planner) sheetOf(name string) *sheet {
	s := p.sheets[name]
	if s == nil {
		s = &sheet{name: name, byName: map[string]*row{}, laneOf: map[string]*lane{}, away: p.away[name]}
		p.sheets[name] = s
	}
	return s
}

// rowOf returns the row of a name and creates it if needed.
func (s *sheet) rowOf(name string) *row {
	r := s.byName[name]
	if r == nil {
		r = &row{name: name}
		s.byName[name] = r
		s.rows = append(s.rows, r)
		if a := s.away[name]; a != nil {
			r.elsewhere = a.channels
			r.setBundle(a.bundle)
		}
	}
	return r
}

func (p *planner) addBundle(b *declcfg.Bundle) {
	r := p.sheetOf(b.Package).rowOf(b.Name)
	if r.bundle == nil {
		r.setBundle(b)
	}
}

func (r *row) setBundle(b *declcfg.Bundle) {
	r.bundle = b
	if v, err := b.VersionRelease(); err == nil {
		r.version, r.versioned = v, true
	}
}

// addChannel creates a lane with its entries, without their edges. It returns nil for a repeated channel.
func (p *planner) addChannel(ch *declcfg.Channel) *lane {
	s := p.sheetOf(ch.Package)
	if s.laneOf[ch.Name] != nil {
		return nil
	}
	l := &lane{name: ch.Name, byRow: map[*row]*node{}}
	l.isDefault = s.pkg != nil && s.pkg.DefaultChannel == ch.Name
	s.lanes = append(s.lanes, l)
	s.laneOf[l.name] = l
	for i := range ch.Entries {
		if n := l.node(s.rowOf(ch.Entries[i].Name)); n.entry == nil {
			n.entry = &ch.Entries[i]
		}
	}
	return l
}

// node returns the node of a row and creates it if needed.
func (l *lane) node(r *row) *node {
	n := l.byRow[r]
	if n == nil {
		n = &node{lane: l, row: r}
		l.byRow[r] = n
		l.nodes = append(l.nodes, n)
	}
	return n
}

// link creates the edges of a lane. A replaced bundle that is not in the channel gets a node; a skipped one gets a node
// only if the catalog has it.
func (l *lane) link(s *sheet) {
	incoming := map[*node]bool{}
	entries := slices.Clone(l.nodes)
	for _, n := range entries {
		if n.entry.Replaces != "" {
			n.replaces = l.node(s.rowOf(n.entry.Replaces))
			incoming[n.replaces] = true
		}
	}
	for _, n := range entries {
		for _, skip := range n.entry.Skips {
			r := s.byName[skip]
			if r == nil && s.away[skip] != nil {
				r = s.rowOf(skip)
			}
			if r == nil || r.bundle == nil && l.byRow[r] == nil {
				n.absent++
				continue
			}
			to := l.node(r)
			to.skipped = true
			incoming[to] = true
			n.skips = append(n.skips, to)
		}
	}
	for _, n := range l.nodes {
		if n.entry != nil && !incoming[n] {
			n.head = true
			l.heads++
		}
	}
}

func (p *planner) deprecate(all []declcfg.Deprecations) {
	for i := range all {
		s := p.sheets[all[i].Package]
		if s == nil {
			continue
		}
		for j := range all[i].Entries {
			e := &all[i].Entries[j]
			switch e.Reference.Schema {
			case declcfg.SchemaPackage:
				s.deprecation = &e.Message
			case declcfg.SchemaChannel:
				if l := s.laneOf[e.Reference.Name]; l != nil {
					l.deprecation = &e.Message
				}
			case declcfg.SchemaBundle:
				if r := s.byName[e.Reference.Name]; r != nil {
					r.deprecation = &e.Message
				}
			}
		}
	}
}

// order sorts rows and lanes for drawing. Rows go from the newest version to the oldest, missing bundles last. The
// default channel is the first lane; the others are sorted by their newest bundle, so that the tops of the lanes form
// stairs.
func (s *sheet) order() {
	slices.SortFunc(s.rows, func(a, b *row) int {
		return cmp.Or(
			compareBool(b.bundle != nil, a.bundle != nil),
			compareBool(b.versioned, a.versioned),
			b.version.Compare(a.version),
			naturally(b.name, a.name),
		)
	})
	for i, r := range s.rows {
		r.index = i
	}
	fromTop := func(a, b *node) int { return a.row.index - b.row.index }
	for _, l := range s.lanes {
		slices.SortFunc(l.nodes, fromTop)
		for _, n := range l.nodes {
			slices.SortFunc(n.skips, fromTop)
			n.skips = slices.Compact(n.skips)
		}
		l.readRanges()
	}
	first := func(l *lane) int {
		if len(l.nodes) == 0 {
			return len(s.rows)
		}
		return l.nodes[0].row.index
	}
	slices.SortFunc(s.lanes, func(a, b *lane) int {
		return cmp.Or(compareBool(b.isDefault, a.isDefault), first(a)-first(b), naturally(b.name, a.name))
	})
	for i, l := range s.lanes {
		l.index = i
		for _, n := range l.nodes {
			n.row.nodes = append(n.row.nodes, n)
		}
	}
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
