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
	names := map[string]bool{}
	gone := map[Name]bool{}
	for _, b := range bundles {
		names[b.Package], gone[b] = true, true
	}
	before, problems := split(c, names)
	for _, b := range bundles {
		if p := before[b.Package]; p == nil || p.bundles[b.Bundle] == nil {
			problems = append(problems, Problem{Package: b.Package, Kind: ErrNotFound,
				Message: fmt.Sprintf("package %q has no bundle %q", b.Package, b.Bundle)})
		}
	}
	if len(problems) > 0 {
		return nil, nil, asError(problems)
	}
	account := &Account{Origins: Origins{}}
	after := map[string]*part{}
	for name, p := range before {
		f := filter{part: p.clone(), selection: &Selection{Package: name}, why: reasons{}}
		for _, channel := range sorted(f.part.channels) {
			entries := f.part.channels[channel]
			kept := map[string]bool{}
			for bundle := range entries.entries {
				if !gone[Name{name, bundle}] {
					kept[bundle] = true
				}
			}
			f.keep(channel, entries, kept)
			if len(entries.entries) == 0 {
				f.why.set(KindChannel, channel, "", "", why)
			}
		}
		for bundle := range p.bundles {
			if gone[Name{name, bundle}] {
				delete(f.part.bundles, bundle)
				f.why.set(KindBundle, "", bundle, "", why)
			}
		}
		f.part.tidy()
		if after[name] = f.part; f.part.empty() {
			after[name] = nil
		} else {
			f.defaultChannel()
			problems = append(problems, f.part.check(true)...)
		}
		account.compare(p, after[name], f.why)
	}
	if len(problems) > 0 {
		return nil, nil, asError(problems)
	}
	account.finish()
	return join(c, after), account, nil
}
