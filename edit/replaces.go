package edit

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
)

// Reasons that accounts give for edges.
const (
	whyCSV    = "its ClusterServiceVersion says so"
	whyPlain  = "it is only skipped in this channel, and so keeps no edges of its own"
	whyTomb   = "the bundle was deprecated by truncation: upgrade graphs end at it"
	whyPruned = "nothing leads to it from the head of the channel"
)

// addReplaces adds bundles by the edges that they wish for. Channels that no added bundle wants to be in or is mentioned
// in stay as they are; the others are made anew from their heads.
func (e *packageEdit) addReplaces() {
	p := e.part
	touched := map[string]bool{}
	for _, n := range e.news {
		if p.bundles[n.name] != nil {
			e.removeOverwritten(n.name, touched)
		}
	}
	wishes := map[string]Origin{}
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
			if _, ok := wishes[entry.Replaces]; ok || slices.ContainsFunc(entry.Skips, func(s string) bool { _, ok := wishes[s]; return ok }) {
				touched[name] = true
				break
			}
		}
	}
	e.maximum()
	b := &rebuild{packageEdit: e, wishes: wishes, known: map[string]Origin{}, leads: map[*channel]*incoming{}}
	channels := map[string]*channel{}
	for _, name := range sorted(touched) {
		if c := b.channel(name); c != nil {
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
		e.found = append(e.found, found{Problem: Problem{Package: p.name, Kind: ErrGraph, Message: fmt.Sprintf("nothing is left of package %s", p.name)}})
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

// removeOverwritten takes a bundle out of its channels, so that another can come in its place.
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

// maximum checks that no two bundles have the highest version, one of which is added.
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

// rebuild makes channels anew.
type rebuild struct {
	*packageEdit
	wishes map[string]Origin // of the added bundles
	known  map[string]Origin // of others, outside of the channel that they are wanted in
	leads  map[*channel]*incoming
}

// channel makes a channel anew; nil if it is gone.
func (b *rebuild) channel(name string) *channel {
	c := b.part.channels[name]
	if c == nil {
		c = newChannel(b.part.name, name)
	}
	head, ok := b.head(name, c)
	if !ok {
		return nil
	}
	if m := b.part.bundles[head]; m.tombstone {
		b.why.set(KindChannel, name, "", "", "its head "+head+" is deprecated")
		return nil
	}
	out := &channel{c.blob, map[string]declcfg.ChannelEntry{}, c.order}
	chain := c.chain()
	var skipped []string
	for at := head; ; {
		w := b.edges(name, c, at)
		out.entries[at] = declcfg.ChannelEntry{Name: at, Replaces: w.Replaces, Skips: w.Skips, SkipRange: b.skipRange(c, at)}
		skipped = append(skipped, w.Skips...)
		next := w.Replaces
		if next == "" {
			break
		}
		if b.part.bundles[next] == nil {
			if n := b.added(at); n != nil {
				b.found = append(b.found, n.problem(ErrGraph, "Invalid bundle %s, replaces nonexistent bundle %s", at, next))
			}
			break // edges of file-based catalogs may lead out of them
		}
		if _, ok := out.entries[next]; ok {
			b.cycle(name, out, at, next)
			break
		}
		at = next
	}
	for _, s := range skipped {
		m := b.part.bundles[s]
		if _, ok := out.entries[s]; ok || m == nil {
			continue
		}
		if old, ok := c.entries[s]; ok && !chain[s] {
			out.entries[s] = old // it was skipped before, and whoever gave it edges wanted them
			continue
		}
		if old, ok := c.entries[s]; ok && old.Replaces != "" {
			b.why.set(KindReplaces, name, s, "", whyPlain)
		}
		out.entries[s] = declcfg.ChannelEntry{Name: s, SkipRange: b.skipRange(c, s)}
	}
	for old := range c.entries {
		if _, ok := out.entries[old]; !ok {
			b.why.set(KindEntry, name, old, "", whyPruned)
		}
	}
	return out
}

func (e *packageEdit) added(name string) *candidate {
	if m := e.part.bundles[name]; m != nil {
		return m.added
	}
	return nil
}

// cycle reports that the chain of a channel comes back to where it was.
func (b *rebuild) cycle(channel string, c *channel, at, next string) {
	f := found{Problem: Problem{Package: b.part.name, Channel: channel, Bundle: at, Kind: ErrGraph,
		Message: fmt.Sprintf("Cycle detected, %s replaces %s", at, next)}}
	for _, n := range b.news {
		if _, ok := c.entries[n.name]; ok {
			f.culprits = append(f.culprits, n)
		}
	}
	b.found = append(b.found, f)
}

// head chooses the head of a channel: the highest version of its former head and of the added bundles that want to be in
// it. Where a channel has no one head, all its bundles are looked at.
func (b *rebuild) head(name string, c *channel) (string, bool) {
	heads := c.heads()
	if len(heads) != 1 {
		heads = sorted(c.entries)
	}
	var best *member
	var tied []string
	consider := func(m *member) {
		if m == nil {
			return
		}
		if best == nil {
			best, tied = m, []string{m.blob.Name}
			return
		}
		c, err := m.version.withBuild(best.version)
		switch {
		case err != nil:
			b.found = append(b.found, found{Problem: Problem{Package: b.part.name, Channel: name, Bundle: m.blob.Name, Kind: ErrInvalid,
				Message: fmt.Sprintf("bundle %s: %v", m.blob.Name, err)}, culprits: b.wanting(name)})
		case c > 0:
			best, tied = m, []string{m.blob.Name}
		case c == 0 && m != best:
			tied = append(tied, m.blob.Name)
		}
	}
	for _, h := range heads {
		consider(b.part.bundles[h])
	}
	for _, n := range b.wanting(name) {
		consider(b.part.bundles[n.name])
	}
	if best == nil {
		return "", false
	}
	if len(tied) > 1 {
		b.found = append(b.found, found{Problem: Problem{Package: b.part.name, Channel: name, Kind: ErrGraph,
			Message: fmt.Sprintf("more than one potential channel head for %s: %v have the version %s", name, tied, best.version)}, culprits: b.wanting(name)})
	}
	b.why.set(KindHead, name, "", best.blob.Name, fmt.Sprintf("%s is the highest version among the former head of the channel and the bundles that are added to it", best.version))
	return best.blob.Name, true
}

// wanting are the added bundles that want to be in a channel.
func (e *packageEdit) wanting(channel string) []*candidate {
	var out []*candidate
	for _, n := range e.news {
		if slices.Contains(n.channels, channel) {
			out = append(out, n)
		}
	}
	return out
}

// edges are those that a bundle has in a channel.
func (b *rebuild) edges(name string, c *channel, bundle string) Origin {
	if b.part.bundles[bundle].tombstone {
		return Origin{}
	}
	if w, ok := b.wishes[bundle]; ok {
		b.whyEdges(name, bundle, w, whyCSV)
		return w
	}
	e, here := c.entries[bundle]
	if here && (e.Replaces != "" || len(e.Skips) > 0 || !b.onlySkipped(c, bundle)) {
		return Origin{Replaces: e.Replaces, Skips: e.Skips}
	}
	w, ok := b.known[bundle]
	if !ok {
		w = b.elsewhere(bundle)
		b.known[bundle] = w
	}
	b.whyEdges(name, bundle, w, "the bundle has this edge in other channels, or says so itself")
	return w
}

// whyEdges gives a reason for edges that have none yet.
func (e *packageEdit) whyEdges(channel, bundle string, w Origin, why string) {
	set := func(kind Kind, value string) {
		if e.why[reasonKey{kind, channel, bundle, value}] == "" {
			reason := e.why[reasonKey{kind, "", bundle, value}]
			if reason == "" {
				reason = why
			}
			e.why.set(kind, channel, bundle, value, reason)
		}
	}
	if w.Replaces != "" {
		set(KindReplaces, w.Replaces)
	}
	for _, s := range w.Skips {
		set(KindSkip, s)
	}
}

// incoming are the bundles that the entries of a channel lead to.
type incoming struct{ replaced, skipped map[string]bool }

// onlySkipped reports whether the entries of the channel lead to a bundle by skips alone.
func (b *rebuild) onlySkipped(c *channel, bundle string) bool {
	in := b.leads[c]
	if in == nil {
		in = &incoming{map[string]bool{}, map[string]bool{}}
		for _, e := range c.entries {
			in.replaced[e.Replaces] = true
			for _, s := range e.Skips {
				in.skipped[s] = true
			}
		}
		b.leads[c] = in
	}
	return in.skipped[bundle] && !in.replaced[bundle]
}

// elsewhere finds the edges of a bundle that has none in a channel, or is not in it: what is known of the bundle beyond
// the catalog; else those of its entry in another channel, the default channel first; else those that its manifests name,
// if the catalog has them and the replaced bundle.
func (b *rebuild) elsewhere(bundle string) Origin {
	if w, ok := b.options.Origins[Name{b.part.name, bundle}]; ok {
		return w
	}
	isEnd := false
	for _, name := range b.part.channelsDefaultFirst() {
		c := b.part.channels[name]
		e, ok := c.entries[bundle]
		if !ok {
			continue
		}
		if e.Replaces != "" || len(e.Skips) > 0 {
			return Origin{Replaces: e.Replaces, Skips: e.Skips}
		}
		isEnd = isEnd || !b.onlySkipped(c, bundle)
	}
	if isEnd {
		return Origin{}
	}
	manifest := wish(b.part.bundles[bundle].blob)
	if manifest == nil {
		return Origin{}
	}
	w := manifest.Origin
	if b.part.bundles[w.Replaces] == nil {
		w.Replaces = ""
	}
	return w
}

func (p *part) channelsDefaultFirst() []string {
	names := sorted(p.channels)
	if i := slices.Index(names, p.pkg.DefaultChannel); i > 0 {
		names = slices.Insert(slices.Delete(names, i, i+1), 0, p.pkg.DefaultChannel)
	}
	return names
}

// skipRange is that of an added bundle, or of its entry in the channel or in another.
func (b *rebuild) skipRange(c *channel, bundle string) string {
	if m := b.part.bundles[bundle]; m.added != nil {
		return m.added.SkipRange
	}
	if e, ok := c.entries[bundle]; ok {
		return e.SkipRange
	}
	for _, name := range b.part.channelsDefaultFirst() {
		if e := b.part.channels[name].entries[bundle]; e.SkipRange != "" {
			return e.SkipRange
		}
	}
	return ""
}

// reachable checks that the added bundles are in the channels that they want to be in.
func (e *packageEdit) reachable() {
	for _, n := range e.news {
		for _, name := range n.channels {
			c := e.part.channels[name]
			if c == nil {
				f := n.problem(ErrGraph, "add prunes bundle %s (%s) from package %s, channel %s: the head of the channel is deprecated", n.name, n.image, e.part.name, name)
				f.Channel, f.soft = name, true
				e.found = append(e.found, f)
				continue
			}
			if _, ok := c.entries[n.name]; ok {
				continue
			}
			heads := c.heads()
			head := ""
			if len(heads) > 0 {
				head = heads[0]
			}
			h := c.entries[head]
			below := slices.Clone(h.Skips)
			if h.Replaces != "" {
				below = append([]string{h.Replaces}, below...)
			}
			f := n.problem(ErrGraph, "add prunes bundle %s (%s) from package %s, channel %s: this may be due to incorrect channel head (%s, skips/replaces %v). "+
				"Be aware that the head of the channel %s where you are trying to add the %s is %s. Upgrade graphs follows the Semantic Versioning 2.0.0 "+
				"(https://semver.org/) which means that is not possible add new versions lower then the head of the channel",
				n.name, n.image, e.part.name, name, head, below, name, n.name, head)
			f.Channel, f.soft = name, true
			e.found = append(e.found, f)
		}
	}
}

// removeStranded removes what is in no channel any more.
func (e *packageEdit) removeStranded() {
	for _, name := range e.part.tidy() {
		e.why.set(KindBundle, "", name, "", "it is in no channel any more")
		if e.old.bundles[name] != nil {
			e.account.Notes = append(e.account.Notes, Problem{Package: e.part.name, Bundle: name, Kind: ErrGraph,
				Message: fmt.Sprintf("bundle %s of package %s is removed: nothing leads to it from the head of a channel any more", name, e.part.name)})
		}
	}
}

// chooseDefault sets the default channel: that which the bundle of the highest version declares, of those that declare
// one. The highest of the bundles that were there before counts as declaring the former default channel.
func (e *packageEdit) chooseDefault() {
	p := e.part
	var best *version
	declared, why := "", ""
	if p.pkg.DefaultChannel != "" {
		declared, why = p.pkg.DefaultChannel, asBefore(KindDefaultChannel)
		for _, m := range e.old.bundles {
			if best == nil || m.version.rank(*best) > 0 {
				best = &m.version
			}
		}
	}
	for _, n := range e.news {
		if n.DefaultChannel != "" && p.bundles[n.name] != nil && (best == nil || n.version.rank(*best) >= 0) {
			best, declared, why = &n.version, n.DefaultChannel, fmt.Sprintf("bundle %s declares it, which is the highest version that declares one", n.name)
		}
	}
	if p.channels[declared] == nil && len(p.channels) == 1 {
		declared, why = sorted(p.channels)[0], "the package has no other channel"
	}
	if p.channels[declared] == nil {
		said := "no bundle declares one"
		if declared != "" {
			said = fmt.Sprintf("%q is declared", declared)
		}
		e.found = append(e.found, found{Problem: Problem{Package: p.name, Kind: ErrDefaultChannel,
			Message: fmt.Sprintf("unable to determine default channel among channel heads: package %q has the channels %q, and %s: set the annotation %s of the bundle with the highest version to one of them",
				p.name, sorted(p.channels), said, bundle.AnnotationDefaultChannel)}})
		return
	}
	p.pkg.DefaultChannel = declared
	e.why.set(KindDefaultChannel, "", "", declared, why)
	e.chooseIcon()
}

// chooseIcon gives the package the icon of the head of its default channel, if the package is new or has had the icon of
// the former head. Whoever chose another icon wanted that.
func (e *packageEdit) chooseIcon() {
	icon, known := e.part.headIcon()
	if !known {
		return
	}
	if !e.old.empty() {
		former, known := e.old.headIcon()
		if !known || !sameIcon(former, e.part.pkg.Icon) {
			return
		}
	}
	e.part.pkg.Icon = icon
}

// headIcon is the icon of the head of the default channel; known is false where nothing tells it.
func (p *part) headIcon() (icon *declcfg.Icon, known bool) {
	c := p.channels[p.pkg.DefaultChannel]
	if c == nil {
		return nil, false
	}
	heads := c.heads()
	if len(heads) != 1 || p.bundles[heads[0]] == nil {
		return nil, false
	}
	m := p.bundles[heads[0]]
	if m.added != nil {
		return m.added.Icon, true
	}
	w := wish(m.blob)
	if w == nil {
		return nil, false
	}
	return w.icon, true
}

func sameIcon(a, b *declcfg.Icon) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.MediaType == b.MediaType && bytes.Equal(a.Data, b.Data)
}
