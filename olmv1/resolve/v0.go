package resolve

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/versions"
)

// V0 is a channel as OLM v0 steps through it. Of one catalog, one channel counts: that of the Subscription, or the
// package's default one. Dependencies and what else is installed in the cluster are not looked at.
type V0 struct {
	Package string
	Channel string

	in    *filed
	order []*entry       // from the head downwards, without skipped entries and prohibited bundles
	all   []entry        // of the channel
	at    map[string]int // positions in order
	above map[string]int // the first position in order that replaces or skips a name
}

// V0Error says why OLM v0 cannot use a package or its channel.
type V0Error struct {
	Package, Channel string
	Reason           string
}

func (e *V0Error) Error() string {
	if e.Channel == "" {
		return fmt.Sprintf("package %q: %s", e.Package, e.Reason)
	}
	return fmt.Sprintf("channel %q of package %q: %s", e.Channel, e.Package, e.Reason)
}

// NewV0 reads a channel of a package. An empty name means the default channel. The error is a *[V0Error] if the channel
// has no unique order from one head downwards, without which OLM v0 resolves nothing.
func NewV0(ctx context.Context, c Catalog, pkg, name string) (*V0, error) {
	f, err := file(ctx, &c, pkg, Gates{})
	if err != nil {
		return nil, err
	}
	if !f.any {
		return nil, &V0Error{Package: pkg, Reason: "the catalog has nothing of it"}
	}
	if name == "" {
		if name = f.defaultChannel; name == "" {
			return nil, &V0Error{Package: pkg, Reason: "it has no default channel"}
		}
	}
	n := slices.IndexFunc(f.channels, func(c channel) bool { return c.name == name })
	if n < 0 {
		return nil, &V0Error{Package: pkg, Channel: name, Reason: "the catalog has no such channel"}
	}
	v := &V0{Package: pkg, Channel: name, in: f, all: f.channels[n].entries}
	order, err := v.sort()
	if err != nil {
		return nil, err
	}
	v.at, v.above = map[string]int{}, map[string]int{}
	for _, e := range order {
		// OLM v0 never installs a bundle with the property olm.deprecated.
		if f.byName[e.name].prohibited {
			continue
		}
		for _, name := range append([]string{e.replaces}, e.skips...) {
			if _, ok := v.above[name]; !ok && name != "" {
				v.above[name] = len(v.order)
			}
		}
		v.at[e.name] = len(v.order)
		v.order = append(v.order, e)
	}
	return v, nil
}

// sort puts the entries that have a bundle in the order of the channel: from its one head along what each replaces.
// Entries that another one skips are left out.
func (v *V0) sort() ([]*entry, error) {
	fail := func(format string, args ...any) ([]*entry, error) {
		return nil, &V0Error{Package: v.Package, Channel: v.Channel, Reason: fmt.Sprintf(format, args...)}
	}
	bundles := map[string]bool{}
	for i := range v.in.bundles {
		bundles[v.in.bundles[i].name] = true
	}
	byName := map[string]*entry{}
	var there []declcfg.ChannelEntry
	for i := range v.all {
		if e := &v.all[i]; bundles[e.name] && byName[e.name] == nil {
			byName[e.name] = e
			there = append(there, declcfg.ChannelEntry{Name: e.name, Replaces: e.replaces, Skips: e.skips})
		}
	}
	u := declcfg.UpgradesOf(there)
	heads := u.Heads()
	switch {
	case len(there) == 0:
		return nil, nil
	case len(heads) == 0:
		return fail("no channel heads (entries not replaced by another entry) found")
	case len(heads) > 1:
		more := ""
		if len(heads) > maxNamed {
			heads, more = heads[:maxNamed], ", …"
		}
		return fail("a unique replacement chain within a channel is required to determine the relative order between "+
			"channel entries, but it has several heads: %s%s", strings.Join(heads, ", "), more)
	}
	chain, again := u.Chain(heads[0], nil)
	if again >= 0 {
		return fail("a cycle exists in the chain of replacement beginning with %q", heads[0])
	}
	var order []*entry
	for _, name := range chain {
		if e := byName[name]; e != nil && !u.Skipped(name) {
			order = append(order, e)
		}
	}
	return order, nil
}

// maxNamed is how many names a message has.
const maxNamed = 5

// Head returns the bundle that OLM v0 installs if nothing is installed; false if the channel has none that it may
// install.
func (v *V0) Head() (Step, bool) {
	if len(v.order) == 0 {
		return Step{}, false
	}
	return v.in.byName[v.order[0].name].step(), true
}

// next returns the newest entry that may follow what is installed: it replaces or skips the bundle, or its skipRange
// contains the version. Entries below the installed one never follow it.
func (v *V0) next(name string, version *semver.Version) *candidate {
	end := len(v.order)
	if at, ok := v.at[name]; ok {
		end = at
	}
	if above, ok := v.above[name]; ok {
		end = min(end, above+1)
	}
	skips := func(*entry) bool { return false }
	if version != nil {
		skips = v.in.skipping(*version)
	}
	for i, e := range v.order[:end] {
		if above, ok := v.above[name]; ok && above == i || skips(e) {
			return v.in.byName[e.name]
		}
	}
	return nil
}

// Path returns the bundles that OLM v0 installs one after the other until no entry of the channel may follow. The
// version is that of the installed bundle; an empty one, or one that cannot be parsed, is in no skipRange. Whether the
// path reaches the head is [V0.Reaches].
func (v *V0) Path(bundle, version string) []Step {
	var at *semver.Version
	if parsed, err := versions.Parse(version); err == nil {
		at = &parsed
	}
	var path []Step
	seen := map[string]bool{bundle: true}
	for {
		b := v.next(bundle, at)
		if b == nil || seen[b.name] {
			return path
		}
		seen[b.name] = true
		path = append(path, b.step())
		bundle, at = b.name, v.parsed(b.name)
	}
}

// Reaches reports whether a path from a bundle ends at the head of the channel; the path from the head itself is empty.
func (v *V0) Reaches(bundle string, path []Step) bool {
	head, ok := v.Head()
	if len(path) > 0 {
		bundle = path[len(path)-1].Bundle
	}
	return ok && bundle == head.Bundle
}

// Installed returns what is installed if a bundle of the package is, by its name or its version, whatever its channel;
// false if the package has no such bundle. The version is empty if the bundle has none.
func (v *V0) Installed(nameOrVersion string) (*Installed, bool) {
	b := v.in.find(nameOrVersion)
	if b == nil {
		return nil, false
	}
	i := &Installed{Name: b.name}
	if b.versionErr == nil {
		i.Version = statusVersion(b.version)
	}
	return i, true
}

// Stuck returns the entries of the channel from which no path leads to its head, in the order of the channel's blob.
// Those without a bundle have no version.
func (v *V0) Stuck(ctx context.Context) ([]Step, error) {
	var stuck []Step
	reaches := map[string]bool{}
	if head, ok := v.Head(); ok {
		reaches[head.Bundle] = true
	}
	seen := map[string]bool{}
	for i := range v.all {
		name := v.all[i].name
		if seen[name] {
			continue
		}
		seen[name] = true
		var walked []string
		for at := name; ; {
			if _, known := reaches[at]; known {
				break
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			walked = append(walked, at)
			reaches[at] = false // until the end is known, and for good in a cycle
			next := v.next(at, v.parsed(at))
			if next == nil {
				break
			}
			at = next.name
			if r, known := reaches[at]; known && r {
				for _, w := range walked {
					reaches[w] = true
				}
			}
		}
		if reaches[name] {
			continue
		}
		s := Step{Bundle: name}
		if b := v.in.byName[name]; b != nil {
			s = b.step()
		}
		stuck = append(stuck, s)
	}
	return stuck, nil
}

// parsed returns the version of a bundle; nil if there is none.
func (v *V0) parsed(bundle string) *semver.Version {
	if b := v.in.byName[bundle]; b != nil && b.versionErr == nil {
		return &b.version.Version
	}
	return nil
}
