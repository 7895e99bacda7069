package filter

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Without returns the result without bundles that cannot be published, with the reason for each: because an image is
// missing, say. What replaced such a bundle replaces what it replaced, and skips it, so that installations of it can
// still be upgraded. If a channel has several heads then, the highest skips the others; a channel, and a package,
// without bundles go too; and the kept channel with the highest head takes the place of a default channel that is gone.
// Each of these is told in Problems. Neither the result nor its catalog is changed.
func (r *Result) Without(gone map[BundleName]string) *Result {
	if len(gone) == 0 {
		return r
	}
	out := *r
	out.WholeCatalog = false
	c := &declcfg.Catalog{Others: r.Catalog.Others}
	w := &without{gone: gone, versions: map[BundleName]semver.Version{}}
	out.Problems = slices.DeleteFunc(slices.Clone(r.Problems), func(p Problem) bool {
		_, is := gone[BundleName{p.Package, p.Bundle}]
		return is && p.Bundle != "" || p.Code == InvalidCatalog
	})
	for _, name := range sortedNames(gone) {
		w.report(Warning, Problem{Code: LeftOut, Package: name.Package, Bundle: name.Bundle},
			"bundle %s is left out: %s",
			fault.Quote(name.Bundle), gone[name])
	}
	for i := range r.Catalog.Bundles {
		b := &r.Catalog.Bundles[i]
		name := BundleName{b.Package, b.Name}
		if v, err := versionOf(b); err == nil {
			w.versions[name] = v
		}
		if _, is := gone[name]; !is {
			c.Bundles = append(c.Bundles, *b)
		}
	}
	heads := map[string]map[string]string{} // of the channels that are left, by package
	for i := range r.Catalog.Channels {
		ch := w.channel(&r.Catalog.Channels[i])
		if len(ch.Entries) == 0 {
			w.report(Warning, Problem{Code: EmptyChannel, Package: ch.Package, Channel: ch.Name},
				"it has no bundle that can be published, and is dropped")
			continue
		}
		c.Channels = append(c.Channels, ch)
		if heads[ch.Package] == nil {
			heads[ch.Package] = map[string]string{}
		}
		heads[ch.Package][ch.Name] = ch.Heads()[0]
	}
	for _, p := range r.Catalog.Packages {
		if len(heads[p.Name]) == 0 {
			w.report(Warning, Problem{Code: NothingKept, Package: p.Name}, "none of its bundles can be published")
			continue
		}
		if heads[p.Name][p.DefaultChannel] == "" && p.DefaultChannel != "" {
			p.DefaultChannel = w.highest(p.Name, heads[p.Name])
			w.report(Warning, Problem{Code: ChosenDefault, Package: p.Name, Channel: p.DefaultChannel},
				"it becomes the default channel, as no bundle of the former one can be published")
		}
		c.Packages = append(c.Packages, p)
	}
	c.Deprecations = w.deprecations(r.Catalog.Deprecations, heads)
	c.Others = slices.DeleteFunc(slices.Clone(c.Others), func(m declcfg.Meta) bool {
		return m.Package != "" && heads[m.Package] == nil
	})
	if len(c.Packages) == 0 {
		w.report(Failure, Problem{Code: NothingKept}, "none of the bundles that are kept can be published")
	}
	out.Catalog, out.Kept, out.Images, out.Others = c, kept(c), images(c.Bundles), len(c.Others)
	validate(c, Failure, w.report, nil, nil)
	out.Problems = append(out.Problems, w.problems...)
	sortProblems(out.Problems)
	out.Account = w.account(r)
	return &out
}

// without is one application of [Result.Without].
type without struct {
	gone     map[BundleName]string
	versions map[BundleName]semver.Version
	problems []Problem
}

func (w *without) report(level Level, p Problem, format string, args ...any) {
	p.Level, p.Text = level, fmt.Sprintf(format, args...)
	w.problems = append(w.problems, p)
}

// chainOf returns the names that the heads of a channel replace, one after the other, from above.
func chainOf(c *declcfg.Channel) []string {
	replaces := map[string]string{}
	for _, e := range c.Entries {
		replaces[e.Name] = e.Replaces
	}
	var chain []string
	seen := map[string]bool{}
	for _, at := range c.Heads() {
		for ; at != "" && !seen[at]; at = replaces[at] {
			seen[at] = true
			chain = append(chain, at)
		}
	}
	return chain
}

// channel returns a channel without the bundles that are left out.
func (w *without) channel(c *declcfg.Channel) declcfg.Channel {
	entries := map[string]*declcfg.ChannelEntry{}
	for i := range c.Entries {
		entries[c.Entries[i].Name] = &c.Entries[i]
	}
	gone := func(name string) bool {
		_, is := w.gone[BundleName{c.Package, name}]
		return is && entries[name] != nil
	}
	out := *c
	out.Entries = nil
	for _, e := range c.Entries {
		if gone(e.Name) {
			continue
		}
		// What is taken out below the entry is skipped by it, with what that skipped.
		e.Skips = slices.Clone(e.Skips)
		seen := map[string]bool{}
		for gone(e.Replaces) && !seen[e.Replaces] {
			below := entries[e.Replaces]
			seen[below.Name] = true
			e.Skips = append(append(e.Skips, below.Name), below.Skips...)
			e.Replaces = below.Replaces
		}
		slices.Sort(e.Skips[min(len(e.Skips), len(entries[e.Name].Skips)):])
		e.Skips = unique(e.Skips)
		out.Entries = append(out.Entries, e)
	}
	w.oneHead(&out, chainOf(c))
	return out
}

// oneHead gives a channel one head: the highest that is left of its chain, or of what the chain skipped if nothing of
// the chain is left. It skips what cannot be reached from it otherwise.
func (w *without) oneHead(c *declcfg.Channel, chain []string) {
	heads := c.Heads()
	if len(heads) == 0 || len(heads) == 1 && !w.stranded(c, heads[0]) {
		return
	}
	best := w.best(c.Package, heads)
	for _, name := range chain {
		if slices.Contains(heads, name) {
			best = name
			break
		}
	}
	unreached := w.unreached(c, best)
	for i := range c.Entries {
		if e := &c.Entries[i]; e.Name == best {
			e.Skips = append(e.Skips, unreached...)
		}
	}
	w.report(Warning, Problem{Code: InvalidChannel, Package: c.Package, Channel: c.Name, Bundle: best},
		"%s becomes its head and skips what it does not lead to, as the former head cannot be published",
		fault.Quote(best))
}

func (w *without) stranded(c *declcfg.Channel, head string) bool {
	return len(w.unreached(c, head)) > 0
}

// unreached returns the entries that neither follow the head in the chain nor are skipped, in the order of the channel.
func (w *without) unreached(c *declcfg.Channel, head string) []string {
	replaces, reached := map[string]string{}, map[string]bool{}
	for _, e := range c.Entries {
		replaces[e.Name] = e.Replaces
		for _, name := range e.Skips {
			reached[name] = true
		}
	}
	for at := head; at != "" && !reached[at]; at = replaces[at] {
		reached[at] = true
	}
	var out []string
	for _, e := range c.Entries {
		if !reached[e.Name] {
			out = append(out, e.Name)
		}
	}
	return out
}

// best returns the bundle with the highest version, the first by name of several.
func (w *without) best(pkg string, names []string) string {
	best := ""
	for _, name := range slices.Sorted(slices.Values(names)) {
		if best == "" || w.versions[BundleName{pkg, name}].Compare(w.versions[BundleName{pkg, best}]) > 0 {
			best = name
		}
	}
	return best
}

// highest returns the channel with the highest head.
func (w *without) highest(pkg string, heads map[string]string) string {
	best := ""
	for _, channel := range sortedKeys(heads) {
		if best == "" || w.versions[BundleName{pkg, heads[channel]}].Compare(
			w.versions[BundleName{pkg, heads[best]}]) > 0 {
			best = channel
		}
	}
	return best
}

// deprecations returns those of what is left.
func (w *without) deprecations(all []declcfg.Deprecations, heads map[string]map[string]string) []declcfg.Deprecations {
	var out []declcfg.Deprecations
	for _, d := range all {
		d.Entries = slices.DeleteFunc(slices.Clone(d.Entries), func(e declcfg.DeprecationEntry) bool {
			switch e.Reference.Schema {
			case declcfg.SchemaBundle:
				_, is := w.gone[BundleName{d.Package, e.Reference.Name}]
				return is
			case declcfg.SchemaChannel:
				return heads[d.Package][e.Reference.Name] == ""
			}
			return heads[d.Package] == nil
		})
		if len(d.Entries) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// account adds the packages of the bundles that are left out to those that have changed before.
func (w *without) account(r *Result) *edit.Account {
	a := &edit.Account{Changes: slices.Clone(r.Account.Changes)}
	known := map[string]bool{}
	for _, c := range a.Changes {
		known[c.Package] = true
	}
	for _, name := range sortedNames(w.gone) {
		if !known[name.Package] {
			known[name.Package] = true
			a.Changes = append(a.Changes,
				edit.Change{Action: edit.Changed, Kind: edit.KindPackage, Package: name.Package,
					Why: "bundles are left out"})
		}
	}
	return a
}

// unique returns names without repetitions.
func unique(names []string) []string {
	seen := map[string]bool{}
	return slices.DeleteFunc(names, func(name string) bool {
		if seen[name] {
			return true
		}
		seen[name] = true
		return false
	})
}
