package template

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// created is a generated channel with its first bundle, the lowest.
type created struct {
	archetype archetype
	kind      channelKind
	channel   int // index of the channel
	lowest    versioned
	highest   versioned
}

// head is a channel head: the default channel and the image of its highest bundle.
type head struct{ channel, image string }

// channels generates the channels of all archetypes. The versions of each archetype are in ascending order.
//
// In an archetype, upgrades lead from minor version to minor version within a major version: the highest bundle of each
// minor version replaces the highest one of the previous minor version, and skips everything else below it. No edges
// lead to other bundles or cross major versions or archetypes. So channels of minor versions have edges that begin in
// other channels.
func (t *semverTemplate) channels(pkg string, lists [archetypes][]versioned) ([]declcfg.Channel, head) {
	var channels []declcfg.Channel
	var all []created
	for a, list := range lists {
		entries := link(list)
		index := map[string]int{} // the position in all
		for i, v := range list {
			for kind, name := range [...]string{
				major: fmt.Sprintf("%s-v%d", archetype(a), v.version.Major),
				minor: fmt.Sprintf("%s-v%d.%d", archetype(a), v.version.Major, v.version.Minor),
			} {
				if !t.generate[kind] {
					continue
				}
				at, ok := index[name]
				if !ok {
					at = len(all)
					index[name] = at
					all = append(all, created{archetype(a), channelKind(kind), len(channels), v, v})
					channels = append(channels, declcfg.Channel{Name: name, Package: pkg})
				}
				all[at].highest = v
				channel := &channels[all[at].channel]
				channel.Entries = append(channel.Entries, entries[i])
			}
		}
	}
	best := slices.MaxFunc(all, t.compare)
	chosen := head{channels[best.channel].Name, best.highest.image}
	slices.SortFunc(channels, func(x, y declcfg.Channel) int { return cmp.Compare(x.Name, y.Name) })
	return channels, chosen
}

// compare orders two channels as candidates for the default channel: by archetype, then by their lowest version, then
// by the preferred kind.
func (t *semverTemplate) compare(x, y created) int {
	preferred := func(c created) int {
		if c.kind == t.preference {
			return 1
		}
		return 0
	}
	return cmp.Or(
		cmp.Compare(x.archetype, y.archetype),
		x.lowest.version.Compare(y.lowest.version),
		cmp.Compare(preferred(x), preferred(y)),
		cmp.Compare(x.kind, y.kind),
	)
}

// link returns the entries of one archetype's bundles, which are in ascending order.
func link(list []versioned) []declcfg.ChannelEntry {
	entries := make([]declcfg.ChannelEntry, len(list))
	var lower []string // names of the bundles of the major version so far
	previous := ""     // the highest bundle of the previous minor version
	for i, v := range list {
		entries[i].Name = v.name
		if i > 0 && list[i-1].version.Major != v.version.Major {
			lower, previous = nil, ""
		}
		last := i+1 == len(list) || list[i+1].version.Major != v.version.Major ||
			list[i+1].version.Minor != v.version.Minor
		if last {
			entries[i].Replaces = previous
			for _, name := range lower {
				if name != previous {
					entries[i].Skips = append(entries[i].Skips, name)
				}
			}
			slices.Sort(entries[i].Skips)
			previous = v.name
		}
		lower = append(lower, v.name)
	}
	return entries
}
