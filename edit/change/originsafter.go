package change

import (
	"maps"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
)

// originsAfter computes which edges bundles declare for themselves after an edit:
//
//   - the edges in the edit, for bundles that it added or whose declared edges it changed;
//   - else the edges in the database's columns, if the channels do not contradict them more than before: the bundle's
//     edges in channels are unchanged, or lead to the column's target, or the bundle has none any more because it is
//     only skipped or was deprecated. Such a bundle gets its edges back when a channel is computed again;
//   - else none: the columns then repeat the channels.
type originsAfter struct {
	before, added edit.Origins
	then, now     map[string]*declcfg.Catalog
	changed       map[string]bool
	edges         map[string]map[string]*places // by package and bundle, of changed packages
}

// places are the edges of a bundle before and after an edit.
type places struct{ then, now place }

type place struct {
	image      string
	there      bool
	deprecated bool             // by truncation
	edges      map[string]edges // by channel
}

type edges struct {
	replaces, skips string
	skipped         bool // the channel reaches the bundle by skips only
}

func newOriginsAfter(before, added edit.Origins, then, now map[string]*declcfg.Catalog, changed map[string]bool) *originsAfter {
	if len(before)+len(added) == 0 {
		return &originsAfter{} // nothing is known about any bundle, so the catalogs need not stay in memory
	}
	return &originsAfter{before, added, then, now, changed, map[string]map[string]*places{}}
}

// of returns the edges that a bundle of the result declares for itself. It is not safe for concurrent use.
func (o *originsAfter) of(pkg, bundle string) (declcfg.Origin, bool) {
	name := edit.Name{Package: pkg, Bundle: bundle}
	if w, ok := o.added[name]; ok {
		return w, true
	}
	was, ok := o.before[name]
	if !ok {
		return declcfg.Origin{}, false
	}
	if !o.changed[pkg] {
		return was, true
	}
	if o.edges[pkg] == nil {
		o.edges[pkg] = placesOf(o.then[pkg], o.now[pkg])
	}
	p := o.edges[pkg][bundle]
	if p == nil || !p.then.there || !p.now.there || p.then.image != p.now.image {
		return declcfg.Origin{}, false
	}
	return was, p.now.deprecated || maps.Equal(p.then.edges, p.now.edges) || p.fit(was)
}

// fit reports whether the channels do not contradict the bundle's declaration.
func (p *places) fit(was declcfg.Origin) bool {
	skips := join(was.Skips)
	none := true
	for _, e := range p.now.edges {
		if e.replaces == "" && e.skips == "" {
			continue
		}
		none = false
		if e.replaces != was.Replaces || e.skips != skips {
			return false
		}
	}
	if !none {
		return true
	}
	for channel, e := range p.now.edges {
		if before := p.then.edges[channel]; !e.skipped && before.replaces+before.skips != "" {
			return false // the bundle is now the end of a chain
		}
	}
	return true
}

// placesOf returns the places of all bundles of a package.
func placesOf(then, now *declcfg.Catalog) map[string]*places {
	out := map[string]*places{}
	for i, c := range []*declcfg.Catalog{then, now} {
		if c == nil {
			continue
		}
		at := func(bundle string) *place {
			if out[bundle] == nil {
				out[bundle] = &places{}
			}
			if i == 0 {
				return &out[bundle].then
			}
			return &out[bundle].now
		}
		for j := range c.Bundles {
			b := &c.Bundles[j]
			p := at(b.Name)
			p.image, p.there, p.edges = b.Image, true, map[string]edges{}
			p.deprecated = slices.ContainsFunc(b.Properties,
				func(q declcfg.Property) bool { return q.Type == declcfg.PropertyDeprecated })
		}
		for j := range c.Channels {
			ch := &c.Channels[j]
			u := ch.Upgrades()
			for _, e := range ch.Entries {
				if p := at(e.Name); p.there {
					p.edges[ch.Name] = edges{e.Replaces, join(e.Skips), u.OnlySkipped(e.Name)}
				}
			}
		}
	}
	return out
}

// join returns a text that is equal for the same names in any order.
func join(names []string) string {
	names = slices.Clone(names)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), "\x00")
}
