package edit

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// Reasons for edges in accounts.
const (
	whyCSV    = "its ClusterServiceVersion says so"
	whyPlain  = "it is only skipped in this channel, and so keeps no edges of its own"
	whyTomb   = "the bundle was deprecated by truncation: upgrade graphs end at it"
	whyPruned = "nothing leads to it from the head of the channel"
)

// addReplaces adds bundles by their declared edges. Channels that no added bundle declares or is mentioned in do not
// change; the others are computed again from their heads.
func (e *packageEdit) addReplaces() {
	p := e.part
	touched := map[string]bool{}
	for _, n := range e.news {
		if p.bundles[n.name] != nil {
			e.removeOverwritten(n.name, touched)
		}
	}
	wishes := map[string]declcfg.Origin{}
	for _, n := range e.news {
		p.bundles[n.name] = &member{blob: n.Bundle, version: n.version, added: n}
		wishes[n.name] = n.wish
		for _, channel := range n.channels {
			touched[channel] = true
		}
	}
	e.substitute(wishes, touched)
	for name, c := range p.channels {
		for _, entry := range c.entries {
			if _, ok := wishes[entry.Replaces]; ok || slices.ContainsFunc(entry.Skips,
				func(s string) bool { _, ok := wishes[s]; return ok }) {
				touched[name] = true
				break
			}
		}
	}
	e.maximum()
	b := &rebuild{packageEdit: e, wishes: wishes, known: map[string]declcfg.Origin{}, leads: map[*channel]*declcfg.Upgrades{}}
	channels := map[string]*channel{}
	for _, name := range sorted(touched) {
		if c := b.rebuildChannel(name); c != nil {
			channels[name] = c
		}
	}
	for name := range touched {
		delete(p.channels, name)
	}
	maps.Copy(p.channels, channels)
	if len(e.found) > 0 {
		return
	}
	e.reachable()
	e.removeStranded()
	if len(p.bundles) == 0 {
		e.found = append(e.found,
			found{Problem: Problem{Package: p.name, Kind: ErrGraph,
				Message: fmt.Sprintf("nothing is left of package %s", p.name)}})
		return
	}
	e.chooseDefault()
	for name, w := range wishes {
		if p.bundles[name] != nil {
			e.origins[Name{p.name, name}] = w
		}
	}
	if !slices.ContainsFunc(e.found, func(f found) bool { return !f.soft }) {
		e.valid()
	}
}

// removeOverwritten removes a bundle from its channels, so that another can replace it.
func (e *packageEdit) removeOverwritten(name string, touched map[string]bool) {
	for channel, c := range e.part.channels {
		if _, ok := c.entries[name]; ok {
			delete(c.entries, name)
			touched[channel] = true
		}
	}
	if e.part.bundles[name].tombstone {
		e.part.undeprecate(func(r declcfg.Reference) bool {
			return r == declcfg.Reference{Schema: declcfg.SchemaBundle, Name: name}
		})
	}
	delete(e.part.bundles, name)
}

// maximum checks that no two bundles share the highest version if one of them is added.
func (e *packageEdit) maximum() {
	all := e.part.byVersion()
	top := all[len(all)-1]
	var tied []string
	blame := []*candidate{}
	for _, m := range all {
		if c, err := m.version.withBuild(top.version); err == nil && c == 0 {
			tied = append(tied, m.blob.Name)
			if m.added != nil {
				blame = append(blame, m.added)
			}
		}
	}
	if len(tied) > 1 && len(blame) > 0 {
		f := blame[0].problem(ErrGraph, "more than one bundle with maximum version %s: %v", top.version, tied)
		f.culprits = blame
		e.found = append(e.found, f)
	}
}

// reachable checks that the added bundles are in the channels that they declare.
func (e *packageEdit) reachable() {
	heads := map[string]string{} // by channel, of those that lack an added bundle
	for _, n := range e.news {
		for _, name := range n.channels {
			c := e.part.channels[name]
			if c == nil {
				f := n.problem(ErrGraph,
					"add prunes bundle %s (%s) from package %s, channel %s: the head of the channel is deprecated",
					n.name, n.image, e.part.name, name)
				f.Channel, f.soft = name, true
				e.found = append(e.found, f)
				continue
			}
			if _, ok := c.entries[n.name]; ok {
				continue
			}
			head, known := heads[name]
			if !known {
				if all := c.heads(); len(all) > 0 {
					head = all[0]
				}
				heads[name] = head
			}
			h := c.entries[head]
			below := slices.Clone(h.Skips)
			if h.Replaces != "" {
				below = append([]string{h.Replaces}, below...)
			}
			f := n.problem(ErrGraph,
				"add prunes bundle %s (%s) from package %s, channel %s: this may be due to incorrect channel head "+
					"(%s, skips/replaces %v). Be aware that the head of the channel %s where you are trying to add "+
					"the %s is %s. Upgrade graphs follows the Semantic Versioning 2.0.0 (https://semver.org/) which "+
					"means that is not possible add new versions lower then the head of the channel",
				n.name, n.image, e.part.name, name, head, below, name, n.name, head)
			f.Channel, f.soft = name, true
			e.found = append(e.found, f)
		}
	}
}

func (e *packageEdit) removeStranded() {
	for _, name := range e.part.tidy() {
		e.why.set(KindBundle, "", name, "", "it is in no channel any more")
		if e.old.bundles[name] != nil {
			e.account.Notes = append(e.account.Notes, Problem{Package: e.part.name, Bundle: name, Kind: ErrGraph,
				Message: fmt.Sprintf(
					"bundle %s of package %s is removed: nothing leads to it from the head of a channel any more", name,
					e.part.name)})
		}
	}
}
