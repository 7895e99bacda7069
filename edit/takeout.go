package edit

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
)

// Item is a channel of a package, or a bundle of a channel.
type Item struct{ Package, Channel, Bundle string }

// String returns the item as PACKAGE/CHANNEL or PACKAGE/CHANNEL/BUNDLE.
func (i Item) String() string { return strings.TrimSuffix(i.Package+"/"+i.Channel+"/"+i.Bundle, "/") }

// TakeOutOptions configure [TakeOut].
type TakeOutOptions struct {
	// Demote leaves every bundle in the catalog: one that would be in no channel any more is [ErrGraph].
	Demote bool
}

// TakeOut removes channels, and bundles from single channels. What a bundle replaced is replaced by what replaced it,
// and the bundle and what it skipped are skipped by it, so that an installation of the bundle still gets to the head. Bundles that are in no channel any
// more go, as do empty channels. A default channel that goes is replaced by the channel with the highest head. A package
// keeps at least one channel: [Remove] removes packages.
//
// The errors are an [*Error]: an item that is not there is [ErrNotFound].
func TakeOut(c *declcfg.Catalog, items []Item, o TakeOutOptions) (*declcfg.Catalog, *Account, error) {
	gone := map[Item]bool{}
	l := leaving{names: map[string]bool{}, why: "no channel has it any more", inherit: true,
		keeps: func(_ *part, pkg, channel, bundle string) bool {
			return !gone[Item{pkg, channel, ""}] && !gone[Item{pkg, channel, bundle}]
		}}
	for _, item := range items {
		l.names[item.Package], gone[item] = true, true
	}
	l.check = func(before map[string]*part) (problems []Problem) {
		for _, item := range items {
			if message := item.missing(before[item.Package]); message != "" {
				problems = append(problems, Problem{Package: item.Package, Channel: item.Channel, Bundle: item.Bundle,
					Kind: ErrNotFound, Message: message})
			}
		}
		return problems
	}
	l.after = func(before, now *part) (problems []Problem) {
		if now.empty() {
			return []Problem{{Package: before.name, Kind: ErrGraph, Message: fmt.Sprintf(
				"package %q would be left without a channel: remove the package instead", before.name)}}
		}
		for _, bundle := range sorted(before.bundles) {
			if o.Demote && now.bundles[bundle] == nil {
				problems = append(problems, Problem{Package: before.name, Bundle: bundle, Kind: ErrGraph,
					Message: fmt.Sprintf("bundle %q of package %q would be left without a channel: remove it instead",
						bundle, before.name)})
			}
		}
		return problems
	}
	return l.removeFrom(c)
}

// missing says what of the item a package lacks, or is empty.
func (i Item) missing(p *part) string {
	switch {
	case p == nil:
		return fmt.Sprintf("package %q is not in the catalog", i.Package)
	case p.channels[i.Channel] == nil:
		return fmt.Sprintf("package %q has no channel %q", i.Package, i.Channel)
	}
	if _, ok := p.channels[i.Channel].entries[i.Bundle]; i.Bundle != "" && !ok {
		return fmt.Sprintf("channel %q of package %q has no bundle %q", i.Channel, i.Package, i.Bundle)
	}
	return ""
}
