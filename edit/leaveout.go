package edit

import (
	"fmt"

	"github.com/operator-bindery/bindery/declcfg"
)

// LeaveOut removes bundles from all channels of their packages, as if they had never been published. Where a channel
// loses a bundle its edges are joined as by [Filter]: what the bundle replaced is replaced by what replaced it, so that
// installations below it still get to the head. Empty channels and packages go. A default channel that goes is replaced
// by the channel with the highest head. The account says why for each edge.
//
// The errors are an [*Error]: a bundle that is not there is [ErrNotFound].
func LeaveOut(c *declcfg.Catalog, bundles []Name, why string) (*declcfg.Catalog, *Account, error) {
	gone := map[Name]bool{}
	l := leaving{names: map[string]bool{}, why: why, channelWhy: why,
		keeps: func(_ *part, pkg, _, bundle string) bool { return !gone[Name{pkg, bundle}] }}
	for _, b := range bundles {
		l.names[b.Package], gone[b] = true, true
	}
	l.check = func(before map[string]*part) (problems []Problem) {
		for _, b := range bundles {
			if p := before[b.Package]; p == nil || p.bundles[b.Bundle] == nil {
				problems = append(problems, Problem{Package: b.Package, Kind: ErrNotFound,
					Message: fmt.Sprintf("package %q has no bundle %q", b.Package, b.Bundle)})
			}
		}
		return problems
	}
	return l.removeFrom(c)
}

// leaving removes entries from the channels of packages.
type leaving struct {
	names map[string]bool // of the packages
	// check finds what is wrong with the request.
	check func(before map[string]*part) []Problem
	// keeps reports whether a channel keeps a bundle.
	keeps func(p *part, pkg, channel, bundle string) bool
	// why is the reason why bundles go, and channelWhy why channels do; empty if it was asked for.
	why, channelWhy string
	// inherit is as in filter.
	inherit bool
	// after finds what is wrong with a package that has changed; it may be nil.
	after func(before, now *part) []Problem
}

// removeFrom removes the bundles from a catalog.
func (l leaving) removeFrom(c *declcfg.Catalog) (*declcfg.Catalog, *Account, error) {
	before, problems := split(c, l.names)
	if problems = append(problems, l.check(before)...); len(problems) > 0 {
		return nil, nil, ErrorOf(problems)
	}
	account := &Account{Origins: Origins{}}
	after := map[string]*part{}
	for name, p := range before {
		f := filter{part: p.clone(), selection: &Selection{Package: name}, why: reasons{}, inherit: l.inherit}
		for _, channel := range sorted(f.part.channels) {
			entries := f.part.channels[channel]
			kept := map[string]bool{}
			for bundle := range entries.entries {
				if l.keeps(p, name, channel, bundle) {
					kept[bundle] = true
				}
			}
			f.keep(channel, entries, kept)
			if len(entries.entries) == 0 && l.channelWhy != "" {
				f.why.set(KindChannel, channel, "", "", l.channelWhy)
			}
		}
		for _, bundle := range f.part.tidy() {
			f.why.set(KindBundle, "", bundle, "", l.why)
		}
		if after[name] = f.part; f.part.empty() {
			after[name] = nil
		} else {
			f.defaultChannel()
			problems = append(problems, f.part.check(true)...)
		}
		if l.after != nil {
			problems = append(problems, l.after(p, f.part)...)
		}
		account.compare(p, after[name], f.why)
	}
	if len(problems) > 0 {
		return nil, nil, ErrorOf(problems)
	}
	account.finish()
	return join(c, after), account, nil
}
