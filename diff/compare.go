package diff

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// Options say what is compared.
type Options struct {
	// Only are the sections that are compared; all where empty. What differs in others does not make a report different.
	Only []Section
}

// Compare compares two catalogs, which need not be valid. Both are read to the end; the error is that of either, and the
// old one is read first.
func Compare(old, new iter.Seq2[declcfg.Blob, error], o Options) (*Report, error) {
	a, err := read(old)
	if err != nil {
		return nil, err
	}
	b, err := read(new)
	if err != nil {
		return nil, err
	}
	c := comparison{only: o.Only}
	r := &Report{Old: a.counts, New: b.counts, Packages: []PackageDiff{}, Images: ImageDiff{Added: []string{}, Removed: []string{}}}
	for _, p := range pairs(a.packages, b.packages) {
		if d, differs := c.pkg(p); differs {
			r.Packages = append(r.Packages, d)
		}
	}
	if c.on(Images) {
		r.Images.Added = missing(b.images, a.images)
		r.Images.Removed = missing(a.images, b.images)
	}
	r.Others = c.others(a.others, b.others)
	r.Same = len(r.Packages)+len(r.Images.Added)+len(r.Images.Removed)+len(r.Others) == 0
	return r, nil
}

type comparison struct{ only []Section }

func (c comparison) on(s Section) bool { return len(c.only) == 0 || slices.Contains(c.only, s) }

// pair is one name on both sides. The value of a side that does not have it is nil.
type pair[V any] struct {
	name     string
	old, new *V
}

func (p pair[V]) change() Change {
	switch {
	case p.old == nil:
		return Added
	case p.new == nil:
		return Removed
	}
	return Changed
}

// pairs joins both sides by name, in the order of names.
func pairs[V any](old, new map[string]*V) []pair[V] {
	names := slices.Collect(maps.Keys(old))
	for name := range new {
		if _, both := old[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := make([]pair[V], len(names))
	for i, name := range names {
		out[i] = pair[V]{name, old[name], new[name]}
	}
	return out
}

// or is the value behind a pointer, or the zero value.
func or[V any](p *V) V {
	if p == nil {
		var zero V
		return zero
	}
	return *p
}

func (c comparison) pkg(p pair[pkg]) (PackageDiff, bool) {
	d := PackageDiff{Name: p.name, Change: p.change()}
	a, b := or(p.old), or(p.new)
	if d.Change == Changed && a.there != b.there {
		// Its other blobs are on both sides, the package itself is not.
		if d.Change = Added; a.there {
			d.Change = Removed
		}
	}
	if c.on(Packages) {
		for _, f := range []string{"defaultChannel", "description", "icon"} {
			if old, new := a.fields[f], b.fields[f]; old != new {
				d.Fields = append(d.Fields, FieldDiff{f, old, new})
			}
		}
	}
	if c.on(Properties) {
		d.Properties = propertyDiffs(a.properties, b.properties)
	}
	for _, x := range pairs(a.channels, b.channels) {
		if x, differs := c.channel(x); differs {
			d.Channels = append(d.Channels, x)
		}
	}
	for _, x := range pairs(a.bundles, b.bundles) {
		if x, differs := c.bundle(x); differs {
			d.Bundles = append(d.Bundles, x)
		}
	}
	if c.on(Deprecations) {
		d.Deprecations = deprecationDiffs(a.deprecations, b.deprecations)
	}
	d.Others = c.others(a.others, b.others)
	differs := len(d.Fields)+len(d.Properties)+len(d.Channels)+len(d.Bundles)+len(d.Deprecations)+len(d.Others) > 0
	return d, differs || d.Change != Changed && c.on(Packages)
}

func (c comparison) channel(p pair[channel]) (ChannelDiff, bool) {
	d := ChannelDiff{Name: p.name, Change: p.change()}
	a, b := or(p.old), or(p.new)
	if a.heads != b.heads && (d.Change == Changed && c.on(Heads) || d.Change != Changed && c.on(Channels)) {
		d.Fields = append(d.Fields, FieldDiff{"head", a.heads, b.heads})
	}
	if c.on(Properties) {
		d.Properties = propertyDiffs(a.properties, b.properties)
	}
	if c.on(Edges) {
		for _, x := range pairs(pointers(a.entries), pointers(b.entries)) {
			if x.old == nil || x.new == nil || !x.old.equal(x.new) {
				d.Entries = append(d.Entries, EntryDiff{x.name, x.change(), x.old, x.new})
			}
		}
	}
	return d, len(d.Fields)+len(d.Properties)+len(d.Entries) > 0 || d.Change != Changed && c.on(Channels)
}

func (e *Edge) equal(o *Edge) bool {
	return e.Replaces == o.Replaces && e.SkipRange == o.SkipRange && slices.Equal(e.Skips, o.Skips)
}

func (c comparison) bundle(p pair[bundle]) (BundleDiff, bool) {
	d := BundleDiff{Name: p.name, Change: p.change()}
	a, b := or(p.old), or(p.new)
	d.Version = cmp.Or(b.version, a.version)
	if c.on(Images) {
		if a.image != b.image {
			d.Fields = append(d.Fields, FieldDiff{"image", a.image, b.image})
		}
		d.RelatedImages = relatedDiffs(a.related, b.related)
	}
	if c.on(Properties) {
		d.Properties = propertyDiffs(a.properties, b.properties)
	}
	return d, len(d.Fields)+len(d.Properties)+len(d.RelatedImages) > 0 || d.Change != Changed && c.on(Bundles)
}

// pointers makes a map of pointers to the values of another.
func pointers[V any](m map[string]V) map[string]*V {
	out := make(map[string]*V, len(m))
	for k, v := range m {
		out[k] = &v
	}
	return out
}
