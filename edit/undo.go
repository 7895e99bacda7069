package edit

import (
	"reflect"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// InChannels returns each of the bundles in each of the channels.
func InChannels(names []Name, channels []string) (items []Item) {
	for _, n := range names {
		for _, channel := range channels {
			items = append(items, Item{Package: n.Package, Channel: channel, Bundle: n.Bundle})
		}
	}
	return items
}

// UndoDemotion returns the promotions, the lowest bundle first, after which the packages are what they were before the
// bundles were taken out of the channels ([TakeOut] with Demote). It returns none if promotions cannot restore the
// packages, since the edges of a promoted bundle are computed again.
func UndoDemotion(before, after *declcfg.Catalog, names []Name, channels []string) []Promotion {
	versions, packages := map[Name]declcfg.VersionRelease{}, map[string]bool{}
	for i := range before.Bundles {
		b := &before.Bundles[i]
		versions[Name{Package: b.Package, Bundle: b.Name}], _ = b.VersionRelease()
	}
	names = slices.Clone(names)
	slices.SortStableFunc(names, func(a, b Name) int { return versions[a].Compare(versions[b]) })
	names = slices.Compact(names)
	for _, n := range names {
		packages[n.Package] = true
	}
	want := outline(before, packages)
	for _, asDefault := range []bool{false, true} {
		var again []Promotion
		for _, i := range InChannels(names, channels) {
			again = append(again, Promotion{Package: i.Package, Bundle: i.Bundle, Channel: i.Channel, Default: asDefault})
		}
		got, _, err := Promote(after, again)
		if err == nil && reflect.DeepEqual(outline(got, packages), want) {
			return again
		}
	}
	return nil
}

// outline returns what an edit of channels can change of packages, by name.
func outline(c *declcfg.Catalog, packages map[string]bool) map[string]any {
	all := map[string]any{}
	for _, p := range c.Packages {
		if packages[p.Name] {
			all[p.Name] = p.DefaultChannel
		}
	}
	for _, ch := range c.Channels {
		if !packages[ch.Package] {
			continue
		}
		all[ch.Package+"/"+ch.Name] = [...]any{len(ch.Properties), len(ch.Unknown)}
		for _, e := range ch.Entries {
			e.Skips = slices.Sorted(slices.Values(e.Skips))
			all[ch.Package+"/"+ch.Name+"/"+e.Name] = e
		}
	}
	for _, d := range c.Deprecations {
		if packages[d.Package] {
			all[d.Package+" deprecations"] = len(d.Entries)
		}
	}
	return all
}
