package edit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// MergeOptions determine how packages that several catalogs have are merged.
type MergeOptions struct {
	// Replace uses the whole package of the later catalog. Without it the packages are joined.
	Replace bool
}

// Merge joins catalogs. A package in several of them gets the channels, entries and bundles of all. Two bundles with
// the same name must be equal, and two entries of one bundle in a channel must not replace different bundles; their
// skips are joined. Default channel, icon and description are those of the first catalog that has them. Of two
// deprecations of the same item the later message counts.
//
// The account describes the changes relative to the first catalog.
func Merge(catalogs []*declcfg.Catalog, o MergeOptions) (*declcfg.Catalog, *Account, error) {
	out := &declcfg.Catalog{}
	account := &Account{Origins: Origins{}}
	if len(catalogs) == 0 {
		return out, account, nil
	}
	names := map[string]bool{}
	for _, c := range catalogs[1:] {
		for name := range packagesOf(c) {
			names[name] = true
		}
	}
	before, problems := split(catalogs[0], names)
	first := packagesOf(catalogs[0])
	merged := map[string]*part{}
	there := map[string]bool{}
	for name := range names {
		if there[name] = first[name]; there[name] && before[name] != nil {
			merged[name] = before[name].clone()
		}
	}
	others := slices.Clone(catalogs[0].Others)
	for _, c := range catalogs[1:] {
		parts, found := split(c, packagesOf(c))
		problems = append(problems, found...)
		for _, name := range sorted(packagesOf(c)) {
			p := parts[name]
			if p == nil {
				continue // the package has only blobs of unknown schemas
			}
			if merged[name] == nil || o.Replace {
				if o.Replace {
					others = slices.DeleteFunc(others, func(m declcfg.Meta) bool { return m.Package == name })
				}
				merged[name] = p.clone()
				continue
			}
			problems = append(problems, merged[name].merge(p)...)
		}
		others = append(others, c.Others...)
	}
	for _, name := range sorted(merged) {
		if len(problems) == 0 {
			problems = append(problems, merged[name].check(false)...)
		}
	}
	if len(problems) > 0 {
		return nil, nil, ErrorOf(problems)
	}
	for name, p := range merged {
		account.compare(before[name], p, nil)
		if before[name] != nil {
			account.overwritten(before[name], p)
		}
	}
	account.finish()
	out = join(catalogs[0], merged)
	out.Others = withoutRepeated(others)
	return out, account, nil
}

// overwritten reports bundles with the same name and image but different content.
func (a *Account) overwritten(before, after *part) {
	for name, m := range after.bundles {
		if old := before.bundles[name]; old != nil && old.blob.Image == m.blob.Image && old.blob != m.blob &&
			!sameBundle(old.blob, m.blob) {
			a.Changes = append(a.Changes, Change{Action: Changed, Kind: KindBundle, Package: after.name, Bundle: name,
				From: m.blob.Image, To: m.blob.Image, Why: "its properties or related images are others"})
		}
	}
}

// withoutRepeated leaves out blobs that are equal to an earlier one. The content of skeletons is unknown.
func withoutRepeated(blobs []declcfg.Meta) []declcfg.Meta {
	seen := map[string]bool{}
	var out []declcfg.Meta
	for _, m := range blobs {
		if key := string(m.Blob); !seen[key] || m.Blob == nil {
			seen[key] = true
			out = append(out, m)
		}
	}
	return out
}

// merge joins another part of the same package to p.
func (p *part) merge(q *part) []Problem {
	var problems []Problem
	conflict := func(channel, bundle, format string, args ...any) {
		problems = append(problems, Problem{Package: p.name, Channel: channel, Bundle: bundle, Kind: ErrConflict,
			Message: fmt.Sprintf("package %q: ", p.name) + fmt.Sprintf(format, args...)})
	}
	p.pkg.Name = p.name
	p.pkg.DefaultChannel = cmp.Or(p.pkg.DefaultChannel, q.pkg.DefaultChannel)
	if p.pkg.Icon == nil {
		p.pkg.Icon = q.pkg.Icon
	}
	p.pkg.Description = cmp.Or(p.pkg.Description, q.pkg.Description)
	p.pkg.Properties = union(p.pkg.Properties, q.pkg.Properties)
	for _, name := range sorted(q.bundles) {
		m := q.bundles[name]
		if have := p.bundles[name]; have == nil {
			p.bundles[name] = m
		} else if !sameBundle(have.blob, m.blob) {
			conflict("", name, "bundle %q is not the same in both catalogs: %s and %s", name,
				orNoImage(have.blob.Image), orNoImage(m.blob.Image))
		}
	}
	for _, name := range sorted(q.channels) {
		d := q.channels[name]
		c := p.channels[name]
		if c == nil {
			p.channels[name] = d
			continue
		}
		c.blob.Properties = union(c.blob.Properties, d.blob.Properties)
		for _, bundle := range sorted(d.entries) {
			e := d.entries[bundle]
			have, ok := c.entries[bundle]
			if !ok {
				c.entries[bundle] = e
				continue
			}
			if have.Replaces != "" && e.Replaces != "" && have.Replaces != e.Replaces {
				conflict(name, bundle, "channel %q: bundle %q replaces %q in one catalog and %q in another", name,
					bundle, have.Replaces, e.Replaces)
			}
			if have.SkipRange != "" && e.SkipRange != "" && have.SkipRange != e.SkipRange {
				conflict(name, bundle, "channel %q: bundle %q has the skipRange %q in one catalog and %q in another",
					name, bundle, have.SkipRange, e.SkipRange)
			}
			have.Replaces = cmp.Or(have.Replaces, e.Replaces)
			have.SkipRange = cmp.Or(have.SkipRange, e.SkipRange)
			have.Skips = clean(append(slices.Clone(have.Skips), e.Skips...))
			c.entries[bundle] = have
		}
	}
	for _, d := range q.deprecations {
		for _, e := range d.Entries {
			p.deprecate(e)
		}
	}
	return problems
}

// union appends the missing properties.
func union(a, b []declcfg.Property) []declcfg.Property {
	out := slices.Clone(a)
	for _, p := range b {
		if !slices.ContainsFunc(out, func(q declcfg.Property) bool { return sameProperty(p, q) }) {
			out = append(out, p)
		}
	}
	return out
}

// sameBundle reports whether two blobs are equal apart from order.
func sameBundle(a, b *declcfg.Bundle) bool {
	if a.Name != b.Name || a.Package != b.Package || a.Image != b.Image || len(a.Properties) != len(b.Properties) ||
		len(a.RelatedImages) != len(b.RelatedImages) {
		return false
	}
	left := map[string]int{}
	for _, p := range a.Properties {
		left[propertyKey(p)]++
	}
	for _, p := range b.Properties {
		left[propertyKey(p)]--
	}
	for _, r := range a.RelatedImages {
		left["image\x00"+r.Name+"\x00"+r.Image]++
	}
	for _, r := range b.RelatedImages {
		left["image\x00"+r.Name+"\x00"+r.Image]--
	}
	for _, n := range left {
		if n != 0 {
			return false
		}
	}
	return reflect.DeepEqual(a.Unknown, b.Unknown)
}

func sameProperty(a, b declcfg.Property) bool {
	return a.Type == b.Type && (bytes.Equal(a.Value, b.Value) || propertyKey(a) == propertyKey(b))
}

// propertyKey is equal for properties that differ only in key order. Numbers are compared as text.
func propertyKey(p declcfg.Property) string {
	if p.Type == declcfg.PropertyBundleObject {
		return p.Type + "\x00" + string(p.Value)
	}
	dec := json.NewDecoder(bytes.NewReader(p.Value))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return p.Type + "\x00" + string(p.Value)
	}
	value, err := json.Marshal(v)
	if err != nil {
		value = p.Value
	}
	return p.Type + "\x00" + string(value)
}
