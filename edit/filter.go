package edit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/versions"
)

// Selection is the part of a package to keep.
type Selection struct {
	Package string
	// Channels are the channels to keep; empty means all.
	Channels []ChannelSelection
	// Versions is a range such as ">=1.2.0 <2.0.0" that applies to all channels; empty for all versions.
	Versions string
	// HeadsOnly keeps only the head of each channel, after applying the version ranges.
	HeadsOnly bool
	// DefaultChannel is the package's new default channel. If it is empty, the default channel stays or, if that is
	// removed, becomes the channel whose head has the highest version, the first by name if there are several.
	DefaultChannel string
}

// ChannelSelection is the part of a channel to keep. Versions is a range; empty means that of the package.
type ChannelSelection struct{ Name, Versions string }

// FilterOptions configure [Filter].
type FilterOptions struct {
	// Permissive skips missing packages and channels and reports them in Account.Problems.
	Permissive bool
}

// Filter keeps the selected part of a catalog. Packages that are not selected are removed; blobs of no package stay.
//
// If bundles of a channel are removed, a bundle that replaced one of them replaces the next lower kept bundle and skips
// those between, so that installed ones can still upgrade. If no lower bundle is kept, the edge stays and leads out of
// the catalog for the same reason. The head is the highest of the bundles that no other one replaces or skips; it skips
// everything that is otherwise unreachable from it.
func Filter(c *declcfg.Catalog, selections []Selection, o FilterOptions) (*declcfg.Catalog, *Account, error) {
	names := map[string]bool{}
	for _, s := range selections {
		names[s.Package] = true
	}
	before, problems := split(c, names)
	account := &Account{Origins: Origins{}}
	gone := map[string]bool{}
	for name := range packagesOf(c) {
		gone[name] = before[name] == nil
	}
	after := map[string]*part{}
	done := map[string]bool{}
	hard := len(problems) > 0
	why := map[string]reasons{}
	for i := range selections {
		s := &selections[i]
		if done[s.Package] {
			hard = true
			problems = append(problems,
				Problem{Package: s.Package, Kind: ErrInvalid,
					Message: fmt.Sprintf("package %q is selected twice", s.Package)})
			continue
		}
		done[s.Package] = true
		p := before[s.Package]
		if p == nil {
			problems = append(problems,
				Problem{Package: s.Package, Kind: ErrNotFound, Message: fmt.Sprintf("package %q not found", s.Package)})
			continue
		}
		f := filter{part: p.clone(), selection: s, why: reasons{}}
		f.apply()
		problems = append(problems, f.problems...)
		hard = hard || f.hard
		after[s.Package], why[s.Package] = f.part, f.why
		if f.part.empty() {
			after[s.Package] = nil
		}
	}
	if hard || len(problems) > 0 && !o.Permissive {
		return nil, nil, ErrorOf(problems)
	}
	account.Problems = problems
	for name, p := range before {
		account.compare(p, after[name], why[name])
	}
	for name, is := range gone {
		if is {
			after[name] = nil
		}
	}
	account.remove(c, gone)
	account.finish()
	return join(c, after), account, nil
}

// filter is the filtering of one package.
type filter struct {
	part      *part
	selection *Selection
	why       reasons
	// inherit makes a bundle that skips removed bundles also skip what these skipped, so that installations of all of
	// them can still be upgraded.
	inherit  bool
	problems []Problem
	hard     bool
}

func (f *filter) report(hard bool, channel string, kind error, format string, args ...any) {
	f.hard = f.hard || hard
	f.problems = append(f.problems,
		Problem{Package: f.part.name, Channel: channel, Kind: kind, Message: fmt.Sprintf(format, args...)})
}

// some returns the first of many names.
func some(names []string) string {
	const few = 10
	if len(names) > few {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), len(names)-few)
	}
	return strings.Join(names, ", ")
}

func (f *filter) apply() {
	p, s := f.part, f.selection
	ranges := map[string]string{}
	if len(s.Channels) == 0 {
		for name := range p.channels {
			ranges[name] = s.Versions
		}
	}
	for _, c := range s.Channels {
		if p.channels[c.Name] == nil {
			f.report(false, c.Name, ErrNotFound, "package %q has no channel %q, only %s", p.name, c.Name,
				some(sorted(p.channels)))
			continue
		}
		ranges[c.Name] = c.Versions
		if c.Versions == "" {
			ranges[c.Name] = s.Versions
		}
	}
	for _, name := range sorted(p.channels) {
		text, ok := ranges[name]
		if !ok {
			delete(p.channels, name)
			continue
		}
		in, err := parseRange(text)
		if err != nil {
			f.report(true, name, errRange, "package %q, channel %q: %v", p.name, name, err)
			return
		}
		f.filterChannel(name, p.channels[name], in)
		if len(p.channels[name].entries) == 0 {
			if len(s.Channels) > 0 {
				f.report(false, name, ErrNotFound, "package %q, channel %q: no bundle has a version in %q", p.name,
					name, text)
			}
			f.why.set(KindChannel, name, "", "", fmt.Sprintf("none of its bundles has a version in %q", text))
		}
	}
	for _, bundle := range p.tidy() {
		f.why.set(KindBundle, "", bundle, "", "no channel that is kept has it")
	}
	if len(p.channels) == 0 {
		if len(f.problems) == 0 {
			if s.Versions != "" {
				f.report(false, "", ErrNotFound, "package %q: no bundle has a version in %q", p.name, s.Versions)
			} else {
				f.report(false, "", ErrNotFound, "package %q: no bundle is selected", p.name)
			}
		}
		return
	}
	f.defaultChannel()
	if problems := p.check(false); len(problems) > 0 {
		f.hard = true
		f.problems = append(f.problems, problems...)
	}
}

// errRange is the kind of what is no range of versions.
var errRange = fault.Advise(ErrInvalid, "a range is such as \">=1.2.0 <2.0.0\", and \"1.2.x || 1.4.0\"")

// parseRange parses a range of versions; nil has all versions.
func parseRange(text string) (*versions.Range, error) {
	if text == "" {
		return nil, nil
	}
	r, err := versions.ParseRange(text)
	switch {
	case errors.Is(err, versions.ErrLong):
		return nil, fmt.Errorf("a version range of %d bytes (limit %d): %w", len(text), versions.MaxRange, ErrLimit)
	case err != nil:
		return nil, fmt.Errorf("version range %q: %w", text, err)
	}
	return &r, nil
}

// filterChannel keeps the bundles of a channel whose versions are in a range.
func (f *filter) filterChannel(name string, c *channel, in *versions.Range) {
	kept := map[string]bool{}
	for bundle := range c.entries {
		if m := f.part.bundles[bundle]; m != nil && (in == nil || in.Contains(m.version.Version)) {
			kept[bundle] = true
		}
	}
	if len(kept) == len(c.entries) && !f.selection.HeadsOnly {
		return
	}
	f.keep(name, c, kept)
	if !f.selection.HeadsOnly || len(c.entries) == 0 {
		return
	}
	f.keep(name, c, map[string]bool{f.highest(c.heads()): true})
}

// keep removes all entries of a channel except the kept ones, and reconnects the chain.
func (f *filter) keep(name string, c *channel, kept map[string]bool) {
	if len(kept) == len(c.entries) {
		return
	}
	next := c.lowerKept(kept)
	entries := make(map[string]declcfg.ChannelEntry, len(kept))
	claimed := map[string]bool{} // each bundle between two others is skipped once, by the highest one above it
	for _, m := range slices.Backward(f.part.byVersion()) {
		bundle := m.blob.Name
		if !kept[bundle] {
			continue
		}
		e := c.entries[bundle]
		if below := next[e.Replaces]; e.Replaces != "" && !kept[e.Replaces] && below != "" {
			e.Skips = slices.Clone(e.Skips)
			for at := e.Replaces; at != below && !claimed[at]; at = c.entries[at].Replaces {
				claimed[at] = true
				e.Skips = append(e.Skips, at)
				if f.inherit {
					e.Skips = append(e.Skips, c.entries[at].Skips...)
				}
				f.why.set(KindSkip, name, bundle, at, "it is not kept, and stood between "+bundle+" and "+below)
			}
			e.Skips = clean(e.Skips)
			f.why.set(KindReplaces, name, bundle, below, "it is the next one below that is kept")
			e.Replaces = below
		}
		entries[bundle] = e
	}
	c.entries = entries
	f.reach(name, c)
}

// lowerKept returns for each bundle of a channel the first kept one along replaces: the bundle itself if it is kept. It
// is empty if the chain ends or is a cycle.
func (c *channel) lowerKept(kept map[string]bool) map[string]string {
	out := map[string]string{}
	for start := range c.entries {
		var path []string
		at := start
		for {
			if _, known := out[at]; known {
				break
			}
			e, ok := c.entries[at]
			if !ok {
				break
			}
			path = append(path, at)
			if kept[at] {
				out[at] = at
				break
			}
			out[at] = "" // until the end is known; a cycle stops here
			at = e.Replaces
		}
		for _, p := range path {
			if !kept[p] {
				out[p] = out[at]
			}
		}
	}
	return out
}

// reach makes the head of a channel skip what is otherwise unreachable from it.
func (f *filter) reach(name string, c *channel) {
	if len(c.entries) == 0 {
		return
	}
	head := f.highest(c.heads())
	if head == "" {
		return // all entries are in cycles, which validating the package reports
	}
	u, reached := c.upgrades(), map[string]bool{}
	chain, _ := u.Chain(head, u.Skipped)
	for _, name := range chain {
		reached[name] = true
	}
	e := c.entries[head]
	e.Skips = slices.Clone(e.Skips)
	for _, m := range f.part.byVersion() {
		bundle := m.blob.Name
		if _, ok := c.entries[bundle]; ok && !reached[bundle] && !u.Skipped(bundle) {
			e.Skips = append(e.Skips, bundle)
			f.why.set(KindSkip, name, head, bundle, "what led to it is not kept")
		}
	}
	c.entries[head] = e
	f.why.set(KindHead, name, "", head, "it is the highest version of the kept bundles that nothing leads to")
}

func (f *filter) highest(names []string) string {
	best := ""
	for _, name := range names {
		if m := f.part.bundles[name]; m != nil && (best == "" || m.version.rank(f.part.bundles[best].version) > 0) {
			best = name
		}
	}
	return best
}

func (f *filter) defaultChannel() {
	p := f.part
	if want := f.selection.DefaultChannel; want != "" {
		if p.channels[want] == nil {
			f.report(true, want, ErrDefaultChannel, "package %q: the default channel is to be %q, which is not kept",
				p.name, want)
			return
		}
		p.pkg.DefaultChannel = want
		f.why.set(KindDefaultChannel, "", "", want, "it was asked for")
		return
	}
	if p.channels[p.pkg.DefaultChannel] != nil {
		return
	}
	best, head := "", ""
	for _, name := range sorted(p.channels) {
		h := f.highest(p.channels[name].heads())
		if h == "" {
			continue
		}
		if best == "" || p.bundles[h].version.rank(p.bundles[head].version) > 0 {
			best, head = name, h
		}
	}
	if best != "" {
		p.pkg.DefaultChannel = best
		f.why.set(KindDefaultChannel, "", "", best, "the former one is not kept, and its head has the highest version")
	}
}
