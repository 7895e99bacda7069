package edit

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// maxPatches is the maximum number of bundles of a channel that one bundle skips as lower patches. Each skips all
// before it, so that the cost is quadratic.
const maxPatches = 2000

// addSemVer adds bundles by version, from the lowest to the highest, ignoring their declared edges.
func (e *packageEdit) addSemVer() {
	news := slices.Clone(e.news)
	slices.SortStableFunc(news,
		func(x, y *candidate) int { return cmp.Or(x.version.rank(y.version), cmp.Compare(x.name, y.name)) })
	ladders := map[string]*ladder{}
	for name, c := range e.part.channels {
		ladders[name] = newLadder(c, e.part)
	}
	for _, n := range news {
		if e.made > maxEdges+maxPatches*maxPatches/2 {
			break // reported with the previous one
		}
		e.insert(n, ladders)
	}
	if len(e.found) > 0 {
		return
	}
	e.removeStranded()
	e.chooseIcon()
	e.valid()
}

// ladder is a channel with its bundles sorted by version.
type ladder struct {
	*channel
	steps   []*member
	skipped map[string]bool
	above   map[string][]string // the bundles that replace a bundle, or once did
}

func newLadder(c *channel, p *part) *ladder {
	l := &ladder{channel: c, skipped: map[string]bool{}, above: map[string][]string{}}
	for name, entry := range c.entries {
		if m := p.bundles[name]; m != nil {
			l.steps = append(l.steps, m)
		}
		l.know(entry)
	}
	slices.SortFunc(l.steps, func(a, b *member) int {
		return cmp.Or(a.version.Compare(b.version.VersionRelease), cmp.Compare(a.blob.Name, b.blob.Name))
	})
	return l
}

// know records the edges of an entry.
func (l *ladder) know(entry declcfg.ChannelEntry) {
	if entry.Replaces != "" {
		l.above[entry.Replaces] = append(l.above[entry.Replaces], entry.Name)
	}
	for _, s := range entry.Skips {
		l.skipped[s] = true
	}
}

func (l *ladder) set(entry declcfg.ChannelEntry) {
	l.entries[entry.Name] = entry
	l.know(entry)
}

// find returns the position of a version, and whether a bundle has it.
func (l *ladder) find(v version) (int, bool) {
	return slices.BinarySearchFunc(l.steps, v, func(m *member, v version) int { return m.version.Compare(v.VersionRelease) })
}

// insert adds one bundle to all channels that it declares, or to none.
func (e *packageEdit) insert(n *candidate, ladders map[string]*ladder) {
	p := e.part
	for _, name := range n.channels {
		l := ladders[name]
		if l == nil {
			continue
		}
		if i, ok := l.find(n.version); ok {
			f := n.problem(ErrGraph,
				"Bundle version %s already added to index: %s and %s are in channel %s of package %s", n.version,
				l.steps[i].blob.Name, n.name, name, p.name)
			f.Channel = name
			e.found = append(e.found, f)
			return
		} else if e.options.Mode == SemVerSkipPatch && i >= maxPatches && isPatch(l.steps[i-maxPatches].version,
			n.version) {
			f := n.problem(ErrLimit, "channel %s of package %s has more than %d patches of the minor version %d.%d",
				name, p.name, maxPatches, n.version.Version.Major, n.version.Version.Minor)
			f.Channel = name
			e.found = append(e.found, f)
			return
		}
	}
	m := &member{blob: n.Bundle, version: n.version, added: n}
	p.bundles[n.name] = m
	for _, name := range n.channels {
		if ladders[name] == nil {
			p.channels[name] = newChannel(p.name, name)
			ladders[name] = newLadder(p.channels[name], p)
		}
		e.insertIn(m, name, ladders[name])
		// A patch skips those below it until a higher one does.
		if e.made += 1 + len(ladders[name].entries[n.name].Skips); e.made > maxEdges+maxPatches*maxPatches/2 {
			e.tooMany(name)
			return
		}
	}
	e.defaultOf(n)
}

// insertIn inserts a bundle between those of the next lower and the next higher version in a channel. Bundles that are
// only skipped do not count as neighbours.
func (e *packageEdit) insertIn(n *member, name string, l *ladder) {
	at, _ := l.find(n.version)
	entry := declcfg.ChannelEntry{Name: n.blob.Name, SkipRange: n.added.SkipRange}
	e.why.set(KindSkipRange, name, entry.Name, entry.SkipRange, whyCSV)
	patches := map[string]bool{}
	for i := at - 1; i >= 0; i-- {
		m := l.steps[i]
		if e.options.Mode == SemVerSkipPatch && isPatch(m.version, n.version) {
			patches[m.blob.Name] = true
			entry.Skips = append(entry.Skips, m.blob.Name)
			e.why.set(KindSkip, name, entry.Name, m.blob.Name, "it is a lower patch of the same minor version")
			continue
		}
		if entry.Replaces == "" && !l.skipped[m.blob.Name] {
			entry.Replaces = m.blob.Name
			e.why.set(KindReplaces, name, entry.Name, m.blob.Name,
				fmt.Sprintf("%s is the next lower version in the channel", m.version))
		}
		if entry.Replaces != "" && (e.options.Mode == SemVer || !sameMinor(m.version, n.version)) {
			break
		}
	}
	slices.Reverse(entry.Skips)
	for _, patch := range slices.Clone(entry.Skips) {
		for _, s := range l.entries[patch].Skips { // only the removed patch may have skipped these
			if !patches[s] && s != entry.Name && !slices.Contains(entry.Skips, s) {
				entry.Skips = append(entry.Skips, s)
				e.why.set(KindSkip, name, entry.Name, s, patch+" skipped it")
			}
		}
	}
	e.skipOver(name, l, patches)
	e.putBelow(n, name, l, at)
	l.steps = slices.Insert(l.steps, at, n)
	l.set(entry)
}

// putBelow makes the next higher bundle replace the added one; if there is none, the added one is the head.
func (e *packageEdit) putBelow(n *member, name string, l *ladder, at int) {
	for at < len(l.steps) && l.skipped[l.steps[at].blob.Name] {
		at++
	}
	if at == len(l.steps) {
		e.why.set(KindHead, name, "", n.blob.Name, fmt.Sprintf("%s is the highest version in the channel", n.version))
		return
	}
	up := l.entries[l.steps[at].blob.Name]
	// An edge that led out of the catalog stays as a skip.
	if _, ok := l.entries[up.Replaces]; up.Replaces != "" && !ok && !slices.Contains(up.Skips, up.Replaces) {
		up.Skips = append(slices.Clone(up.Skips), up.Replaces)
	}
	up.Replaces = n.blob.Name
	l.set(up)
	e.why.set(KindReplaces, name, up.Name, up.Replaces,
		fmt.Sprintf("%s is the next lower version in the channel", n.version))
}

func sameMinor(a, b version) bool {
	return a.Version.Major == b.Version.Major && a.Version.Minor == b.Version.Minor
}

// isPatch reports whether a has the same minor version as b and a lower patch number.
func isPatch(a, b version) bool {
	return sameMinor(a, b) && a.Version.Patch < b.Version.Patch
}

// skipOver removes bundles from the chain of a channel: a bundle that replaced one of them replaces what that one
// replaced.
func (e *packageEdit) skipOver(name string, l *ladder, out map[string]bool) {
	for _, skipped := range sorted(out) {
		for _, at := range l.above[skipped] {
			entry := l.entries[at]
			if out[at] || !out[entry.Replaces] {
				continue
			}
			for steps := 0; out[entry.Replaces] && steps <= len(out); steps++ {
				entry.Replaces = l.entries[entry.Replaces].Replaces
			}
			l.set(entry)
			e.why.set(KindReplaces, name, at, entry.Replaces, "what it replaced is skipped")
		}
	}
	for skipped := range out {
		entry := l.entries[skipped]
		entry.Replaces, entry.Skips = "", nil
		l.entries[skipped] = entry
		e.why.set(KindReplaces, name, skipped, "", whyPlain)
	}
}

// defaultOf sets the default channel: the one that the added bundle declares, if the package has it; else the current
// one; else the first of the bundle's channels.
func (e *packageEdit) defaultOf(n *candidate) {
	p := e.part
	first := slices.Min(n.channels)
	switch {
	case n.DefaultChannel != "" && p.channels[n.DefaultChannel] != nil:
		p.pkg.DefaultChannel = n.DefaultChannel
		e.why.set(KindDefaultChannel, "", "", n.DefaultChannel, "bundle "+n.name+" declares it")
		return
	case p.pkg.DefaultChannel == "" || p.channels[p.pkg.DefaultChannel] == nil:
		p.pkg.DefaultChannel = first
		e.why.set(KindDefaultChannel, "", "", first,
			"no channel of the package is declared, and it is the first of bundle "+n.name)
	}
	if n.DefaultChannel != "" {
		e.account.Notes = append(e.account.Notes,
			Problem{Package: p.name, Channel: n.DefaultChannel, Bundle: n.name, Kind: ErrDefaultChannel,
				Message: fmt.Sprintf(
					"the default channel (%s) that bundle %s declares does not exist: package %s keeps %s until "+
						"it does", n.DefaultChannel, n.name, p.name, p.pkg.DefaultChannel)})
	}
}
