package filter

import (
	"fmt"
	"maps"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/imageset"
)

// bundle is a bundle with its version.
type bundle struct {
	blob    *declcfg.Bundle
	version semver.Version
}

// add adds a bundle of the package. A bundle without a version makes the whole catalog unusable, as for oc-mirror: no
// range could be relied on.
func (p *pkg) add(blob *declcfg.Bundle) {
	b := &bundle{blob: blob}
	var err error
	if b.version, err = versionOf(blob); err != nil {
		p.f.fail(Problem{Code: InvalidVersion, Package: blob.Package, Bundle: blob.Name}, "bundle %s: %v",
			fault.Quote(blob.Name), err)
	}
	if p.bundles[blob.Name] == nil {
		p.order = append(p.order, b)
	}
	p.bundles[blob.Name] = b
}

// channelNames returns the names of the package's channels, sorted.
func (p *pkg) channelNames() []string {
	names := make([]string, 0, len(p.channels))
	for _, c := range p.channels {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	return names
}

// apply decides what is kept of the package.
func (p *pkg) apply() {
	ranges := map[string]imageset.Channel{}
	if s := p.selection; s != nil {
		for _, c := range s.Channels {
			if c.MinVersion == "" && c.MaxVersion == "" {
				c.MinVersion, c.MaxVersion = s.MinVersion, s.MaxVersion
			}
			ranges[c.Name] = c
		}
		p.unknownChannels()
	}
	for _, c := range p.channels {
		if _, ok := ranges[c.Name]; ok || len(ranges) == 0 {
			p.before[c.Name] = true
		}
	}
	p.chooseDefault()
	for _, c := range p.channels {
		if !p.before[c.Name] {
			continue
		}
		want, ok := ranges[c.Name]
		if !ok && p.selection != nil {
			want.MinVersion, want.MaxVersion = p.selection.MinVersion, p.selection.MaxVersion
		}
		in, err := parseVersions(want.MinVersion, want.MaxVersion)
		if err != nil {
			p.f.fail(Problem{Code: InvalidVersion, Package: p.blob.Name, Channel: c.Name}, "%v", err)
			continue
		}
		p.keepEntries(c, in)
	}
	if len(p.before) == 0 {
		// oc-mirror looks at bundles by channel: without one it keeps them all. Such a catalog is refused later.
		for name := range p.bundles {
			p.names[name] = true
		}
	}
	for _, names := range p.entries {
		for name := range names {
			if p.bundles[name] != nil {
				p.names[name] = true
			}
		}
	}
}

// unknownChannels reports the channels that are requested and not there.
func (p *pkg) unknownChannels() {
	there := p.channelNames()
	for _, c := range p.selection.Channels {
		if slices.Contains(there, c.Name) {
			continue
		}
		p.f.absent(Problem{Code: UnknownChannel, Package: p.blob.Name, Channel: c.Name, Fix: suggest(c.Name, there)},
			"it is not in the package")
	}
}

// chooseDefault decides on the default channel of a package that is named, before versions are looked at.
func (p *pkg) chooseDefault() {
	if p.selection == nil {
		return
	}
	if want := p.selection.DefaultChannel; want != "" {
		p.defaultChannel = want
		if !p.before[want] {
			p.f.fail(Problem{Code: MissingDefault, Package: p.blob.Name, Channel: want, Fix: p.candidates()},
				"specified default channel override does not exist in the filtered output")
		}
		return
	}
	if p.defaultChannel == "" || p.before[p.defaultChannel] {
		return
	}
	if p.f.o.AutoDefaultChannel && p.chooseHighest("is not kept", p.before) {
		return
	}
	p.f.fail(Problem{Code: MissingDefault, Package: p.blob.Name, Channel: p.defaultChannel, Fix: p.candidates()},
		"the default channel was filtered out, a new default channel must be configured for this package")
}

// candidates returns advice on which channels could be the default one.
func (p *pkg) candidates() string {
	names := slices.Sorted(maps.Keys(p.before))
	switch len(names) {
	case 0:
		return p.noneOf(p.channelNames())
	case 1:
		return "write defaultChannel: " + names[0]
	}
	return "write defaultChannel with one of " + few(names)
}

// noneOf is the advice if no channel that is requested is in the package.
func (p *pkg) noneOf(there []string) string {
	for _, c := range p.selection.Channels {
		if !slices.Contains(there, c.Name) {
			return fmt.Sprintf("the package has no channel %s: %s", fault.Quote(c.Name), suggest(c.Name, there))
		}
	}
	return suggestAll(there)
}

func suggestAll(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "the package has the channels " + few(names)
}

// chooseHighest makes the channel with the highest head the default one, of those that are given, and reports it.
func (p *pkg) chooseHighest(why string, among map[string]bool) bool {
	best, bestVersion := "", semver.Version{}
	for _, c := range p.channels {
		if !among[c.Name] {
			continue
		}
		g, err := newGraph(p.keptOf(c))
		if err != nil || p.bundles[g.head] == nil {
			continue
		}
		if v := p.bundles[g.head].version; best == "" || v.Compare(bestVersion) > 0 ||
			v.Compare(bestVersion) == 0 && c.Name < best {
			best, bestVersion = c.Name, v
		}
	}
	if best == "" {
		return false
	}
	if p.defaultChannel != "" {
		why = fault.Quote(p.defaultChannel) + " " + why
	}
	p.f.report(Warning, Problem{Code: ChosenDefault, Package: p.blob.Name, Channel: best,
		Fix: "write defaultChannel: " + best}, "it becomes the default channel, as %s and its head is the highest", why)
	p.defaultChannel = best
	return true
}

// keptOf returns a channel with the entries that are kept, or as it is as long as that is not decided.
func (p *pkg) keptOf(c *declcfg.Channel) *declcfg.Channel {
	keep, decided := p.entries[c.Name]
	if !decided {
		return c
	}
	out := *c
	out.Entries = slices.DeleteFunc(slices.Clone(c.Entries), func(e declcfg.ChannelEntry) bool { return !keep[e.Name] })
	return &out
}

// keepEntries decides which entries of a channel are kept.
func (p *pkg) keepEntries(c *declcfg.Channel, in *interval) {
	at := Problem{Package: p.blob.Name, Channel: c.Name}
	keep := map[string]bool{}
	p.entries[c.Name] = keep
	key := p.blob.Name + "/" + c.Name
	switch {
	case p.f.op.Full && in != nil:
		at.Code, at.Fix = MixedVersions, "remove full, or the versions"
		p.f.fail(at, "full: true cannot be mixed with versions")
	case p.f.op.Full:
		p.f.why[key] = "full: all entries"
		for i := range c.Entries {
			keep[c.Entries[i].Name] = true
		}
	case in != nil && in.exact:
		p.f.why[key] = "the one bundle with the version " + in.min.String()
		p.exact(c, in, at)
	case in != nil:
		g, err := newGraph(c)
		if err != nil {
			at.Code = InvalidChannel
			p.f.fail(at, "%v", err)
			return
		}
		p.f.why[key] = "the versions " + in.text + ", and what connects them"
		p.entries[c.Name] = g.within(func(name string) bool {
			b := p.bundles[name]
			return b != nil && in.contains(b.version)
		})
		if len(p.entries[c.Name]) == 0 {
			p.nothingIn(c, in, at)
		}
	default:
		g, err := newGraph(c)
		if err != nil {
			at.Code = InvalidChannel
			p.f.fail(at, "unable to filter head of channel: %v", err)
			return
		}
		p.f.why[key] = "the head: no versions are given"
		keep[g.head] = true
	}
}

// nothingIn drops a channel without a bundle in the range. Without its default channel a package cannot stand.
func (p *pkg) nothingIn(c *declcfg.Channel, in *interval, at Problem) {
	delete(p.entries, c.Name)
	delete(p.f.why, p.blob.Name+"/"+c.Name)
	at.Fix = p.spread(c)
	switch {
	case c.Name == p.blob.DefaultChannel && !p.f.o.AutoDefaultChannel:
		at.Code = EmptyDefault
		if c.Name != p.defaultChannel {
			at.Fix = "name the channels to keep, without this one, or let --auto-default-channel drop it"
		}
		p.f.fail(at, "the versions %s result in an empty channel", fault.Quote(in.text))
	case c.Name == p.defaultChannel:
		// Told when all channels are known, see filter.defaults.
	default:
		at.Code = EmptyChannel
		p.empty(at, "it has no bundle with the versions %s, and is not kept", fault.Quote(in.text))
	}
}

// empty reports a channel without a bundle that is kept. It matters if the channel is named: a range for a whole
// package need not fit each of its channels.
func (p *pkg) empty(at Problem, format string, args ...any) {
	if p.selection != nil && slices.ContainsFunc(p.selection.Channels,
		func(c imageset.Channel) bool { return c.Name == at.Channel }) {
		p.f.absent(at, format, args...)
		return
	}
	p.f.report(Warning, at, format, args...)
}

// spread returns the versions that a channel has.
func (p *pkg) spread(c *declcfg.Channel) string {
	var low, high *bundle
	for i := range c.Entries {
		b := p.bundles[c.Entries[i].Name]
		if b == nil {
			continue
		}
		if low == nil || b.version.LT(low.version) {
			low = b
		}
		if high == nil || b.version.GT(high.version) {
			high = b
		}
	}
	if low == nil {
		return ""
	}
	return "the channel has versions from " + low.version.String() + " to " + high.version.String()
}

// exact keeps the bundle with one version: a bundle of the package, whether or not the channel has it. Of several equal
// versions it is one that the channel has, and of these the one with the build metadata that is requested, else the
// highest by build metadata, then by name. oc-mirror takes any.
func (p *pkg) exact(c *declcfg.Channel, in *interval, at Problem) {
	has := map[string]bool{}
	for i := range c.Entries {
		has[c.Entries[i].Name] = true
	}
	var best *bundle
	for _, b := range p.order {
		if b.version.Compare(in.min.Version) != 0 {
			continue
		}
		if best == nil || has[b.blob.Name] && !has[best.blob.Name] ||
			has[b.blob.Name] == has[best.blob.Name] && above(b, best, in.min.Build) {
			best = b
		}
	}
	switch {
	case best == nil:
		at.Code, at.Fix = VersionMissing, p.spread(c)
		p.f.fail(at, "specific version %s not found in bundles", in.min)
	case has[best.blob.Name]:
		p.entries[c.Name][best.blob.Name] = true
	default:
		p.loose[best.blob.Name] = true
	}
}

// above reports whether a is to be taken rather than b, which has the same precedence: because it alone has the build
// metadata that is requested, or else because it is higher.
func above(a, b *bundle, build []string) bool {
	if x, y := slices.Equal(a.version.Build, build), slices.Equal(b.version.Build, build); len(build) > 0 && x != y {
		return x
	}
	if x, y := a.version.Build, b.version.Build; !slices.Equal(x, y) {
		return slices.Compare(x, y) > 0
	}
	return a.blob.Name > b.blob.Name
}
