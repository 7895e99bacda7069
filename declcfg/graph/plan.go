package graph

import (
	"cmp"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// sheet is one package as it is drawn: bundles are rows, the newest first; channels are lanes, side by side.
type sheet struct {
	name        string
	pkg         *declcfg.Package // nil if the catalog has no such blob
	deprecation *string
	lanes       []*lane
	rows        []*row
	byName      map[string]*row
	laneOf      map[string]*lane
	partial     bool             // not all channels are drawn
	away        map[string]*away // the bundles that are in channels which are not drawn, and in no other
}

// away is a bundle that no drawn channel has an entry for.
type away struct {
	bundle   *declcfg.Bundle
	channels []string // that have one
}

// row is a bundle, or a name that channels use for one that is not there.
type row struct {
	name        string
	bundle      *declcfg.Bundle // nil if the catalog has none of that name
	version     declcfg.VersionRelease
	versioned   bool
	deprecation *string
	elsewhere   []string // the channels that have an entry for it, if none of those that are drawn has
	index       int
	nodes       []*node // in the order of the lanes
}

// lane is a channel.
type lane struct {
	name        string
	index       int
	isDefault   bool
	deprecation *string
	nodes       []*node // from the top
	heads       int
	byRow       map[*row]*node

	geometry
}

// node is where a bundle stands in a channel.
type node struct {
	lane  *lane
	row   *row
	entry *declcfg.ChannelEntry // nil where the bundle is only named by another entry of the channel
	head  bool
	// skipped is true if an entry of the channel skips the bundle.
	skipped bool
	// replaces is the bundle that is replaced; nil if there is none.
	replaces *node
	skips    []*node // from the top, each once
	absent   int     // how many of the skipped bundles are not in the catalog
}

// sheets makes the sheets of what the options choose.
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

// awayFrom finds by package the bundles of a catalog that are in channels, and in none of a part of the catalog.
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

// newSheets makes the sheets of a catalog, by name. It takes catalogs that are not valid: who looks at a drawing may
// be looking for what is wrong. Of what is there twice the first is drawn. away are bundles by package that c lacks,
// and that its channels may name.
func newSheets(c *declcfg.Catalog, away map[string]map[string]*away) []*sheet {
	p := planner{sheets: map[string]*sheet{}, away: away}
	for i := range c.Packages {
		if s := p.sheet(c.Packages[i].Name); s.pkg == nil {
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
			l.link(p.sheet(c.Channels[i].Package))
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

func (p *planner) sheet(name string) *sheet {
	s := p.sheets[name]
	if s == nil {
		s = &sheet{name: name, byName: map[string]*row{}, laneOf: map[string]*lane{}, away: p.away[name]}
		p.sheets[name] = s
	}
	return s
}

// row returns the row of a name and makes it where it is missing.
func (s *sheet) row(name string) *row {
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
	r := p.sheet(b.Package).row(b.Name)
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

// addChannel makes a lane with its entries, but not their edges. It returns nil for a channel that is there already.
func (p *planner) addChannel(ch *declcfg.Channel) *lane {
	s := p.sheet(ch.Package)
	if s.laneOf[ch.Name] != nil {
		return nil
	}
	l := &lane{name: ch.Name, byRow: map[*row]*node{}}
	l.isDefault = s.pkg != nil && s.pkg.DefaultChannel == ch.Name
	s.lanes = append(s.lanes, l)
	s.laneOf[l.name] = l
	for i := range ch.Entries {
		if n := l.node(s.row(ch.Entries[i].Name)); n.entry == nil {
			n.entry = &ch.Entries[i]
		}
	}
	return l
}

// node returns the node of a row and makes it where it is missing.
func (l *lane) node(r *row) *node {
	n := l.byRow[r]
	if n == nil {
		n = &node{lane: l, row: r}
		l.byRow[r] = n
		l.nodes = append(l.nodes, n)
	}
	return n
}

// link makes the edges of a lane. A bundle that is replaced but not in the channel gets a node; one that is only skipped
// does so if the catalog has it.
func (l *lane) link(s *sheet) {
	incoming := map[*node]bool{}
	entries := slices.Clone(l.nodes)
	for _, n := range entries {
		if n.entry.Replaces != "" {
			n.replaces = l.node(s.row(n.entry.Replaces))
			incoming[n.replaces] = true
		}
	}
	for _, n := range entries {
		for _, skip := range n.entry.Skips {
			r := s.byName[skip]
			if r == nil && s.away[skip] != nil {
				r = s.row(skip)
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

// order brings rows and lanes into the order in which they are drawn. Rows go from the newest version to the oldest, and
// bundles that are not there come last. The default channel is the first lane; the others follow by their newest bundle,
// so that the lanes begin like stairs.
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
