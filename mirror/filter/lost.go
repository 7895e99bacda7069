package filter

import (
	"cmp"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/versions"
)

// Installed is a version of a package that users have.
type Installed struct{ Package, Version string }

// Lost are versions of a channel that the source can upgrade and the kept catalog cannot: nothing that is kept replaces
// or skips them.
type Lost struct {
	Package string `json:"package"`
	Channel string `json:"channel"`
	// Head is the kept head; empty if the channel is not kept.
	Head     string        `json:"head,omitempty"`
	Versions []lostVersion `json:"versions"`
	// Fix says what to write in the configuration.
	Fix string `json:"fix,omitempty"`
}

// lostVersion is a bundle of the source. Version is empty if the source has no such bundle.
type lostVersion struct {
	Bundle  string `json:"bundle"`
	Version string `json:"version,omitempty"`
}

// findLost finds the versions without a way to the kept head of their channel, for all kept channels or for the installed
// versions.
func (f *filter) findLost() []Lost {
	var out []Lost
	for _, p := range f.packages {
		if p.dependency {
			continue
		}
		for _, c := range p.channels {
			if len(p.entries[c.Name]) == 0 || f.o.Installed != nil {
				continue
			}
			l := p.lostIn(c, func(string) bool { return true })
			if len(l.Versions) > 0 {
				out = append(out, l)
			}
		}
	}
	for _, i := range f.o.Installed {
		out = append(out, f.lostInstalled(i)...)
	}
	slices.SortStableFunc(out, func(a, b Lost) int {
		return cmp.Or(cmp.Compare(a.Package, b.Package), cmp.Compare(a.Channel, b.Channel))
	})
	return out
}

// lostInstalled looks for the ways of one installed version.
func (f *filter) lostInstalled(i Installed) []Lost {
	at := Problem{Code: UnknownVersion, Package: i.Package}
	version, err := versions.ParseTolerant(i.Version)
	if err != nil {
		f.report(Warning, at, "the installed version %s is no semantic version", fault.Quote(i.Version))
		return nil
	}
	n := slices.IndexFunc(f.packages, func(p *pkg) bool { return p.blob.Name == i.Package })
	if n < 0 {
		f.report(Warning, at, "version %s is installed, and nothing of the package is kept", fault.Quote(i.Version))
		return nil
	}
	p := f.packages[n]
	same := func(name string) bool {
		b := p.bundles[name]
		return b != nil && b.version.Compare(version) == 0 &&
			(len(version.Build) == 0 || slices.Equal(b.version.Build, version.Build))
	}
	var out []Lost
	found, ways := false, 0
	for _, c := range p.channels {
		if !slices.ContainsFunc(c.Entries, func(e declcfg.ChannelEntry) bool { return same(e.Name) }) {
			continue
		}
		found = true
		if l := p.lostIn(c, same); len(l.Versions) > 0 {
			out = append(out, l)
		} else {
			ways++
		}
	}
	if !found {
		for _, c := range p.channels {
			if p.waysIn(c).ranged.Contains(version) {
				ways++
			}
		}
		f.report(Warning, at, "the installed version %s is not in the catalog", fault.Quote(i.Version))
		if ways == 0 {
			at.Code = LosesInstalled
			f.report(Warning, at, "the installed version %s cannot be upgraded to a kept head", fault.Quote(i.Version))
		}
		return nil
	}
	if ways > 0 {
		// The version is in a kept channel from which it can be upgraded; channels that are not kept do not count.
		out = slices.DeleteFunc(out, func(l Lost) bool { return l.Head == "" })
	}
	for _, l := range out {
		at := Problem{Code: LosesInstalled, Package: l.Package, Channel: l.Channel, Bundle: l.Versions[0].Bundle,
			Fix: l.Fix}
		if l.Head == "" {
			f.report(Warning, at, "the installed version %s is in this channel, which is not kept",
				fault.Quote(i.Version))
			continue
		}
		f.report(Warning, at, "the installed version %s cannot be upgraded to the kept head %s", fault.Quote(i.Version),
			fault.Quote(l.Head))
	}
	return out
}

// ways are the edges of the kept entries of a channel.
type ways struct {
	*declcfg.Upgrades
	ranged versions.Range // all skipRanges together
}

// waysIn returns the edges of what is kept of a channel.
func (p *pkg) waysIn(c *declcfg.Channel) *ways {
	kept := slices.DeleteFunc(slices.Clone(c.Entries), func(e declcfg.ChannelEntry) bool { return !p.entries[c.Name][e.Name] })
	var ranges []versions.Range
	for _, e := range kept {
		if in, err := versions.ParseRange(e.SkipRange); err == nil {
			ranges = append(ranges, in)
		}
	}
	return &ways{declcfg.UpgradesOf(kept), versions.Union(ranges...)}
}

// lostIn returns which of the entries of a channel have no way to its kept head.
func (p *pkg) lostIn(c *declcfg.Channel, of func(name string) bool) Lost {
	w := p.waysIn(c)
	l := Lost{Package: p.blob.Name, Channel: c.Name}
	if heads := w.Heads(); len(heads) > 0 {
		l.Head = heads[len(heads)-1]
	}
	var lowest *bundle
	var lost []*bundle
	for i := range c.Entries {
		name := c.Entries[i].Name
		b := p.bundles[name]
		if w.Has(name) || !of(name) || b != nil && w.ranged.Contains(b.version) {
			continue
		}
		if b == nil {
			l.Versions = append(l.Versions, lostVersion{Bundle: name})
			continue
		}
		lost = append(lost, b)
		if lowest == nil || b.version.LT(lowest.version) {
			lowest = b
		}
	}
	slices.SortStableFunc(lost, func(a, b *bundle) int {
		return cmp.Or(a.version.Compare(b.version), cmp.Compare(a.blob.Name, b.blob.Name))
	})
	for _, b := range lost {
		l.Versions = append(l.Versions, lostVersion{b.blob.Name, b.version.String()})
	}
	switch {
	case len(l.Versions) == 0:
	case l.Head == "":
		l.Fix = "keep the channel " + c.Name
	case lowest != nil:
		l.Fix = "minVersion: " + lowest.version.String() + " keeps their way"
	}
	return l
}
