package edit

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// part is one package of a catalog in a form for editing. It owns everything except the bundles' blobs.
type part struct {
	name         string
	pkg          declcfg.Package
	channels     map[string]*channel
	bundles      map[string]*member
	deprecations []declcfg.Deprecations
}

// channel is a channel with its entries by name.
type channel struct {
	blob    declcfg.Channel // its Entries are not used
	entries map[string]declcfg.ChannelEntry
	order   []string // the entries in the order of the blob
}

// member is a bundle of a package.
type member struct {
	blob    *declcfg.Bundle
	version version
	// tombstone is set for bundles deprecated by truncation: upgrade graphs end at them.
	tombstone bool
	added     *candidate // nil for bundles that existed before
}

// empty reports whether the package has no content.
func (p *part) empty() bool { return len(p.channels) == 0 && len(p.bundles) == 0 }

func newPart(name string) *part {
	return &part{
		name: name, pkg: declcfg.Package{Name: name},
		channels: map[string]*channel{}, bundles: map[string]*member{},
	}
}

func newChannel(pkg, name string) *channel {
	return &channel{blob: declcfg.Channel{Name: name, Package: pkg}, entries: map[string]declcfg.ChannelEntry{}}
}

// clone copies what edits change.
func (p *part) clone() *part {
	q := *p
	q.channels = make(map[string]*channel, len(p.channels))
	for name, c := range p.channels {
		q.channels[name] = c.clone()
	}
	q.bundles = maps.Clone(p.bundles)
	q.deprecations = slices.Clone(p.deprecations)
	return &q
}

func (c *channel) clone() *channel {
	return &channel{c.blob, maps.Clone(c.entries), c.order}
}

// upgrades returns the edges of the channel.
func (c *channel) upgrades() *declcfg.Upgrades {
	return declcfg.UpgradesOf(slices.Collect(maps.Values(c.entries)))
}

// heads returns the entries that no other entry replaces or skips, sorted by name.
func (c *channel) heads() []string { return slices.Sorted(slices.Values(c.upgrades().Heads())) }

// chain returns the entries on the replaces chains from the heads.
func (c *channel) chain() map[string]bool {
	chain, u := map[string]bool{}, c.upgrades()
	for _, head := range u.Heads() {
		names, _ := u.Chain(head, func(name string) bool { return chain[name] || u.Entry(name) == nil })
		for _, name := range names {
			chain[name] = true
		}
	}
	return chain
}

// split converts packages of a catalog for editing. The result has no part for missing packages. Repeated names, and
// bundles without a version, are problems.
func split(c *declcfg.Catalog, names map[string]bool) (map[string]*part, []Problem) {
	parts := map[string]*part{}
	var problems []Problem
	get := func(name string) *part {
		p := parts[name]
		if p == nil {
			p = newPart(name)
			parts[name] = p
		}
		return p
	}
	twice := func(b declcfg.Blob) {
		problems = append(problems, Problem{Package: b.BlobPackage(), Kind: ErrInvalid,
			Message: fmt.Sprintf("package %q has duplicate %s %q", b.BlobPackage(), b.BlobSchema(), b.BlobName())})
	}
	seen := map[string]bool{}
	for i := range c.Packages {
		b := &c.Packages[i]
		if !names[b.Name] {
			continue
		}
		if seen[b.Name] {
			twice(b)
		}
		seen[b.Name] = true
		get(b.Name).pkg = *b
	}
	for i := range c.Channels {
		b := &c.Channels[i]
		if !names[b.Package] {
			continue
		}
		p := get(b.Package)
		if p.channels[b.Name] != nil {
			twice(b)
		}
		ch := &channel{blob: *b, entries: make(map[string]declcfg.ChannelEntry, len(b.Entries)),
			order: make([]string, len(b.Entries))}
		ch.blob.Entries = nil
		for j, e := range b.Entries {
			ch.entries[e.Name], ch.order[j] = e, e.Name
		}
		p.channels[b.Name] = ch
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		if !names[b.Package] {
			continue
		}
		p := get(b.Package)
		if p.bundles[b.Name] != nil {
			twice(b)
		}
		v, err := versionOf(b)
		if err != nil {
			problems = append(problems, Problem{Package: b.Package, Bundle: b.Name, Image: b.Image, Kind: ErrInvalid,
				Message: fmt.Sprintf("package %q, bundle %q: %v", b.Package, b.Name, err)})
		}
		p.bundles[b.Name] = &member{blob: b, version: v,
			tombstone: slices.ContainsFunc(b.Properties, hasType(declcfg.PropertyDeprecated))}
	}
	for i := range c.Deprecations {
		if b := &c.Deprecations[i]; names[b.Package] {
			p := get(b.Package)
			p.deprecations = append(p.deprecations, *b)
		}
	}
	return parts, problems
}

// join replaces packages of a catalog by edited ones. Blobs keep their positions; new ones are appended. A nil part
// removes the package with all its content.
func join(c *declcfg.Catalog, parts map[string]*part) *declcfg.Catalog {
	out := &declcfg.Catalog{}
	done := map[*channel]bool{}
	doneBundle := map[*member]bool{}
	donePart := map[*part]bool{}
	for i := range c.Packages {
		b := c.Packages[i]
		if p, ok := parts[b.Name]; ok {
			if p == nil || donePart[p] {
				continue
			}
			donePart[p] = true
			b = p.pkg
		}
		out.Packages = append(out.Packages, b)
	}
	for i := range c.Channels {
		b := c.Channels[i]
		if p, ok := parts[b.Package]; ok {
			if p == nil || p.channels[b.Name] == nil || done[p.channels[b.Name]] {
				continue
			}
			done[p.channels[b.Name]] = true
			b = p.channels[b.Name].join(p)
		}
		out.Channels = append(out.Channels, b)
	}
	for i := range c.Bundles {
		b := &c.Bundles[i]
		if p, ok := parts[b.Package]; ok {
			if p == nil || p.bundles[b.Name] == nil || doneBundle[p.bundles[b.Name]] {
				continue
			}
			doneBundle[p.bundles[b.Name]] = true
			b = p.bundles[b.Name].blob
		}
		out.Bundles = append(out.Bundles, *b)
	}
	for i := range c.Deprecations {
		if _, ok := parts[c.Deprecations[i].Package]; !ok {
			out.Deprecations = append(out.Deprecations, c.Deprecations[i])
		}
	}
	for i := range c.Others {
		if p, ok := parts[c.Others[i].Package]; !ok || p != nil {
			out.Others = append(out.Others, c.Others[i])
		}
	}
	for _, name := range sorted(parts) {
		p := parts[name]
		if p == nil {
			continue
		}
		if !donePart[p] {
			out.Packages = append(out.Packages, p.pkg)
		}
		for _, channel := range sorted(p.channels) {
			if ch := p.channels[channel]; !done[ch] {
				out.Channels = append(out.Channels, ch.join(p))
			}
		}
		for _, m := range p.byVersion() {
			if !doneBundle[m] {
				out.Bundles = append(out.Bundles, *m.blob)
			}
		}
		out.Deprecations = append(out.Deprecations, p.deprecations...)
	}
	return out
}

// join builds the blob of a channel. Entries keep their order; new ones are appended from the lowest version to the
// highest.
func (c *channel) join(p *part) declcfg.Channel {
	b := c.blob
	b.Entries = make([]declcfg.ChannelEntry, 0, len(c.entries))
	done := map[string]bool{}
	for _, name := range c.order {
		if e, ok := c.entries[name]; ok && !done[name] {
			done[name] = true
			b.Entries = append(b.Entries, e)
		}
	}
	var added []*member // a package can have as many channels as bundles: only those of this one are sorted
	for name := range c.entries {
		if m := p.bundles[name]; m != nil && !done[name] {
			added = append(added, m)
		}
	}
	sortByVersion(added)
	for _, m := range added {
		done[m.blob.Name] = true
		b.Entries = append(b.Entries, c.entries[m.blob.Name])
	}
	for _, name := range sorted(c.entries) { // entries without a bundle
		if !done[name] {
			b.Entries = append(b.Entries, c.entries[name])
		}
	}
	return b
}

// catalog returns a catalog of the part alone.
func (p *part) catalog() *declcfg.Catalog {
	return join(&declcfg.Catalog{}, map[string]*part{p.name: p})
}

// byVersion returns the bundles sorted by version, then by name.
func (p *part) byVersion() []*member {
	out := slices.Collect(maps.Values(p.bundles))
	sortByVersion(out)
	return out
}

func sortByVersion(list []*member) {
	slices.SortFunc(list, func(a, b *member) int {
		return cmp.Or(a.version.rank(b.version), cmp.Compare(a.blob.Name, b.blob.Name))
	})
}

// tidy removes bundles in no channel, channels without entries, and deprecations of removed items. It returns the
// removed bundles.
func (p *part) tidy() (stranded []string) {
	used := map[string]bool{}
	for name, c := range p.channels {
		if len(c.entries) == 0 {
			delete(p.channels, name)
		}
		for bundle := range c.entries {
			used[bundle] = true
		}
	}
	for name := range p.bundles {
		if !used[name] {
			stranded = append(stranded, name)
			delete(p.bundles, name)
		}
	}
	slices.Sort(stranded)
	p.undeprecate(func(r declcfg.Reference) bool {
		return r.Schema == declcfg.SchemaBundle && p.bundles[r.Name] == nil ||
			r.Schema == declcfg.SchemaChannel && p.channels[r.Name] == nil
	})
	return stranded
}

// undeprecate removes the deprecations for which gone returns true.
func (p *part) undeprecate(gone func(declcfg.Reference) bool) {
	var out []declcfg.Deprecations
	for _, d := range p.deprecations {
		kept := slices.DeleteFunc(slices.Clone(d.Entries),
			func(e declcfg.DeprecationEntry) bool { return gone(e.Reference) })
		if len(kept) > 0 || len(d.Entries) == 0 {
			d.Entries = kept
			out = append(out, d)
		}
	}
	p.deprecations = out
}

// check validates the part; with anyImages images need not be pull specs.
func (p *part) check(anyImages bool) []Problem {
	c := p.catalog()
	valid := c.Validate
	if anyImages {
		valid = c.ValidateAnyImages
	}
	err := valid()
	if err == nil {
		return nil
	}
	var v *declcfg.ValidationError
	if !errors.As(err, &v) {
		return []Problem{{Package: p.name, Kind: ErrGraph, Message: err.Error()}}
	}
	var out []Problem
	for i := range v.Problems {
		q := &v.Problems[i]
		where := fmt.Sprintf("package %q", p.name)
		if q.Channel != "" {
			where += fmt.Sprintf(", channel %q", q.Channel)
		}
		if q.Bundle != "" {
			where += fmt.Sprintf(", bundle %q", q.Bundle)
		}
		out = append(out, Problem{Package: p.name, Channel: q.Channel, Bundle: q.Bundle, Kind: ErrGraph,
			Message: where + ": " + q.Text()})
	}
	return out
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
