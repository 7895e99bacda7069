package edit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// rebuild computes the entries of channels again.
type rebuild struct {
	*packageEdit
	wishes map[string]declcfg.Origin // declared edges of the added bundles
	known  map[string]declcfg.Origin // edges of others, from outside of the channel
	leads  map[*channel]*declcfg.Upgrades
}

// rebuildChannel computes a channel again; nil if it is removed.
func (b *rebuild) rebuildChannel(name string) *channel {
	if b.made > maxEdges {
		return nil // reported for an earlier channel
	}
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
		if b.made += 1 + len(w.Skips); b.made > maxEdges {
			b.tooMany(name)
			return nil
		}
		out.entries[at] = declcfg.ChannelEntry{Name: at, Replaces: w.Replaces, Skips: w.Skips,
			SkipRange: b.skipRange(name, c, at)}
		skipped = append(skipped, w.Skips...)
		next := w.Replaces
		if next == "" {
			break
		}
		if b.part.bundles[next] == nil {
			if n := b.added(at); n != nil {
				b.found = append(b.found,
					n.problem(ErrGraph, "Invalid bundle %s, replaces nonexistent bundle %s", at, next))
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
			out.entries[s] = old // it was skipped before, and its author declared its edges
			continue
		}
		if old, ok := c.entries[s]; ok && old.Replaces != "" {
			b.why.set(KindReplaces, name, s, "", whyPlain)
		}
		out.entries[s] = declcfg.ChannelEntry{Name: s, SkipRange: b.skipRange(name, c, s)}
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

// cycle reports that the chain of a channel is a cycle.
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

// head chooses the head of a channel: the highest version of its former head and of the added bundles that declare the
// channel. If a channel does not have exactly one head, all its bundles are considered.
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
			b.found = append(b.found,
				found{Problem: Problem{Package: b.part.name, Channel: name, Bundle: m.blob.Name, Kind: ErrInvalid,
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
			Message: fmt.Sprintf("more than one potential channel head for %s: %v have the version %s", name, tied,
				best.version)}, culprits: b.wanting(name)})
	}
	b.why.set(KindHead, name, "", best.blob.Name,
		fmt.Sprintf(
			"%s is the highest version among the former head of the channel and the bundles that are added to it",
			best.version))
	return best.blob.Name, true
}

// wanting returns the added bundles that declare a channel.
func (e *packageEdit) wanting(channel string) []*candidate {
	if e.byChannel == nil {
		e.byChannel = map[string][]*candidate{}
		for _, n := range e.news {
			for _, c := range n.channels {
				e.byChannel[c] = append(e.byChannel[c], n)
			}
		}
	}
	return slices.Clip(e.byChannel[channel])
}

func (b *rebuild) edges(name string, c *channel, bundle string) declcfg.Origin {
	if b.part.bundles[bundle].tombstone {
		return declcfg.Origin{}
	}
	if w, ok := b.wishes[bundle]; ok {
		b.whyEdges(name, bundle, w, whyCSV)
		return w
	}
	e, here := c.entries[bundle]
	if here && (e.Replaces != "" || len(e.Skips) > 0 || !b.onlySkipped(c, bundle)) {
		return declcfg.Origin{Replaces: e.Replaces, Skips: e.Skips}
	}
	w, ok := b.known[bundle]
	if !ok {
		w = b.elsewhere(bundle)
		b.known[bundle] = w
	}
	b.whyEdges(name, bundle, w, "the bundle has this edge in other channels, or says so itself")
	return w
}

// whyEdges adds a reason for edges that have none yet.
func (e *packageEdit) whyEdges(channel, bundle string, w declcfg.Origin, why string) {
	set := func(kind Kind, value string) {
		if e.why[reasonKey{kind, channel, bundle, value}] == "" {
			reason := e.why[reasonKey{kind, "", bundle, value}]
			reason = cmp.Or(reason, why)
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

// onlySkipped reports whether the entries of the channel lead to a bundle by skips alone.
func (b *rebuild) onlySkipped(c *channel, bundle string) bool {
	if b.leads[c] == nil {
		b.leads[c] = c.upgrades()
	}
	return b.leads[c].OnlySkipped(bundle)
}

// elsewhere finds edges for a bundle that has none in a channel or is not in it: those of its entry in another channel,
// the default channel first; else its declared edges; else those in its manifests, if the catalog has them. The last
// two count only if the replaced bundle exists.
func (b *rebuild) elsewhere(bundle string) declcfg.Origin {
	isEnd := false
	for _, name := range b.part.channelsDefaultFirst() {
		c := b.part.channels[name]
		e, ok := c.entries[bundle]
		if !ok {
			continue
		}
		if e.Replaces != "" || len(e.Skips) > 0 {
			return declcfg.Origin{Replaces: e.Replaces, Skips: e.Skips}
		}
		isEnd = isEnd || !b.onlySkipped(c, bundle)
	}
	if isEnd {
		return declcfg.Origin{}
	}
	w, ok := b.options.Origins[Name{b.part.name, bundle}]
	if !ok {
		m := b.manifest(b.part.bundles[bundle].blob)
		if m == nil {
			return declcfg.Origin{}
		}
		w = m.Origin
	}
	w.Skips = clean(w.Skips)
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

// skipRange returns that of an added bundle, or of its entry in the channel or in another.
func (b *rebuild) skipRange(name string, c *channel, bundle string) string {
	if m := b.part.bundles[bundle]; m.added != nil {
		b.why.set(KindSkipRange, name, bundle, m.added.SkipRange, whyCSV)
		return m.added.SkipRange
	}
	if e, ok := c.entries[bundle]; ok {
		return e.SkipRange
	}
	for _, other := range b.part.channelsDefaultFirst() {
		if e := b.part.channels[other].entries[bundle]; e.SkipRange != "" {
			return e.SkipRange
		}
	}
	return ""
}
