package resolve

import (
	"iter"
	"slices"
)

// Edge is an upgrade that OLM v1 may take within a catalog, by the choice of channels and versions.
type Edge struct {
	From, To string
	// Channels are those whose entry of To replaces, skips or skips by its range From, in the order of the catalog; none
	// if only the version of both is equal.
	Channels []string
}

// Edges returns the upgrades from each bundle of a catalog to each of its others, in the order of their files' names.
// Bundles to which the resolver gives an error instead of an answer have none, and neither have those without a version.
func (r *Resolver) Edges() iter.Seq[Edge] {
	return func(yield func(Edge) bool) {
		for _, f := range r.catalogs {
			if !f.edges(yield) {
				return
			}
		}
	}
}

// link is an entry of a channel.
type link struct {
	channel *channel
	entry   *entry
}

func (f *filed) edges(yield func(Edge) bool) bool {
	named := map[string][]link{}
	var ranged []link
	for i := range f.channels {
		c := &f.channels[i]
		for k := range c.entries {
			e := &c.entries[k]
			if e.replaces != "" {
				named[e.replaces] = append(named[e.replaces], link{c, e})
			}
			for _, name := range e.skips {
				named[name] = append(named[name], link{c, e})
			}
			if !e.matches.None() {
				ranged = append(ranged, link{c, e})
			}
		}
	}
	numbers := make(map[string]int, len(f.bundles))
	for i := range f.bundles {
		numbers[f.bundles[i].name] = i
	}
	for i := range f.bundles {
		from := &f.bundles[i]
		if from.versionErr != nil {
			continue
		}
		next := map[string]map[*channel]bool{}
		add := func(l link) {
			if next[l.entry.name] == nil {
				next[l.entry.name] = map[*channel]bool{}
			}
			next[l.entry.name][l.channel] = true
		}
		for _, l := range named[from.name] {
			add(l)
		}
		for _, l := range ranged {
			if l.entry.matches.Has(i) {
				add(l)
			}
		}
		candidates := f.versions.Equal(i)
		for name := range next {
			if k, ok := numbers[name]; ok {
				candidates = append(candidates, k)
			}
		}
		slices.Sort(candidates)
		for _, k := range slices.Compact(candidates) {
			to := &f.bundles[k]
			allowed := next[to.name]
			if k == i || to.versionErr != nil || to.dependency != "" ||
				allowed == nil && to.version.Compare(from.version) != 0 {
				continue
			}
			e := Edge{From: from.name, To: to.name}
			for n := range f.channels {
				if allowed[&f.channels[n]] {
					e.Channels = append(e.Channels, f.channels[n].name)
				}
			}
			if !yield(e) {
				return false
			}
		}
	}
	return true
}
