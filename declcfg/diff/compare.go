package diff

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// Options configure a comparison.
type Options struct {
	// Only are the sections to compare; empty means all. Differences in other sections are ignored.
	Only []Section
}

// Compare compares two catalogs, valid or not, package by package: only one package of each is in memory, and the names
// of all images. The blobs of both come in the order of [declcfg.Catalog.Blobs]. Both are read to the end; the error is
// that of either, or the old one's if both have one.
func Compare(old, current iter.Seq2[declcfg.Blob, error], o Options) (_ *Report, err error) {
	images := map[string]sides{}
	a, b := newSide(old, images, isOld), newSide(current, images, isNew)
	defer a.stop()
	defer b.stop()
	c := comparison{only: o.Only}
	r := &Report{Packages: []packageDiff{}, Images: imageDiff{Added: []string{}, Removed: []string{}}}
	for {
		name, more, err := nextPackage(a, b)
		if err != nil {
			return nil, err
		}
		if !more {
			break
		}
		p := pair[pkg]{name: name}
		if p.old, err = a.readPackage(name); err != nil {
			return nil, err
		}
		if p.new, err = b.readPackage(name); err != nil {
			return nil, a.errorOr(err)
		}
		if p.old == nil && p.new == nil {
			continue // there are only blobs of no package
		}
		if d, differs := c.comparePackage(p); differs {
			r.Packages = append(r.Packages, d)
		}
	}
	// Blobs that lack a package although their schema needs one are read last and reported first.
	slices.SortStableFunc(r.Packages, func(x, y packageDiff) int { return cmp.Compare(x.Name, y.Name) })
	r.Old, r.New = a.counts, b.counts
	for name, in := range images {
		if in&isOld != 0 {
			r.Old.Images++
		}
		if in&isNew != 0 {
			r.New.Images++
		}
		switch {
		case !c.includes(Images):
		case in == isNew:
			r.Images.Added = append(r.Images.Added, name)
		case in == isOld:
			r.Images.Removed = append(r.Images.Removed, name)
		}
	}
	slices.Sort(r.Images.Added)
	slices.Sort(r.Images.Removed)
	r.Others = c.others(a.others, b.others)
	r.Same = len(r.Packages)+len(r.Images.Added)+len(r.Images.Removed)+len(r.Others) == 0
	return r, nil
}

// nextPackage returns the name of the package that is next on either side.
func nextPackage(a, b *side) (name string, more bool, err error) {
	x, moreX, err := a.peek()
	if err != nil {
		return "", false, err
	}
	y, moreY, err := b.peek()
	if err != nil {
		return "", false, a.errorOr(err)
	}
	if !moreX || moreY && comparePackages(y, x) < 0 {
		return y, moreY, nil
	}
	return x, true, nil
}

// comparePackages orders packages by name, blobs without a package last.
func comparePackages(a, b string) int {
	if (a == "") != (b == "") {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(a, b)
}

type comparison struct{ only []Section }

func (c comparison) includes(s Section) bool { return len(c.only) == 0 || slices.Contains(c.only, s) }

// pair is the value of a name on both sides; nil on a side that lacks it.
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

// pairs joins both sides by name and sorts by name.
func pairs[V any](old, current map[string]*V) []pair[V] {
	names := slices.Collect(maps.Keys(old))
	for name := range current {
		if _, both := old[name]; !both {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	out := make([]pair[V], len(names))
	for i, name := range names {
		out[i] = pair[V]{name, old[name], current[name]}
	}
	return out
}

// or returns the value of a pointer, or the zero value.
func or[V any](p *V) V {
	if p == nil {
		var zero V
		return zero
	}
	return *p
}

func (c comparison) comparePackage(p pair[pkg]) (packageDiff, bool) {
	d := packageDiff{Name: p.name, Change: p.change()}
	a, b := or(p.old), or(p.new)
	if d.Change == Changed && a.there != b.there {
		// The package exists on both sides by its other blobs, but its olm.package blob only on one.
		if d.Change = Added; a.there {
			d.Change = Removed
		}
	}
	if c.includes(Packages) {
		for _, f := range []string{"defaultChannel", "description", "icon"} {
			if old, current := a.fields[f], b.fields[f]; old != current {
				d.Fields = append(d.Fields, fieldDiff{f, old, current})
			}
		}
	}
	if c.includes(Properties) {
		d.Properties = propertyDiffs(a.properties, b.properties)
	}
	for _, x := range pairs(a.channels, b.channels) {
		if x, differs := c.compareChannel(x); differs {
			d.Channels = append(d.Channels, x)
		}
	}
	for _, x := range pairs(a.bundles, b.bundles) {
		if x, differs := c.compareBundle(x); differs {
			d.Bundles = append(d.Bundles, x)
		}
	}
	if c.includes(Deprecations) {
		d.Deprecations = deprecationDiffs(a.deprecations, b.deprecations)
	}
	d.Others = c.others(a.others, b.others)
	differs := len(d.Fields)+len(d.Properties)+len(d.Channels)+len(d.Bundles)+len(d.Deprecations)+len(d.Others) > 0
	return d, differs || d.Change != Changed && c.includes(Packages)
}

func (c comparison) compareChannel(p pair[channel]) (channelDiff, bool) {
	d := channelDiff{Name: p.name, Change: p.change()}
	a, b := or(p.old), or(p.new)
	if a.heads != b.heads && (d.Change == Changed && c.includes(Heads) || d.Change != Changed && c.includes(Channels)) {
		d.Fields = append(d.Fields, fieldDiff{"head", a.heads, b.heads})
	}
	if c.includes(Properties) {
		d.Properties = propertyDiffs(a.properties, b.properties)
	}
	if c.includes(Edges) {
		for _, x := range pairs(pointers(a.entries), pointers(b.entries)) {
			if x.old == nil || x.new == nil || !x.old.equal(x.new) {
				d.Entries = append(d.Entries, entryDiff{x.name, x.change(), x.old, x.new})
			}
		}
	}
	return d, len(d.Fields)+len(d.Properties)+len(d.Entries) > 0 || d.Change != Changed && c.includes(Channels)
}

func (e *edge) equal(o *edge) bool {
	return e.Replaces == o.Replaces && e.SkipRange == o.SkipRange && slices.Equal(e.Skips, o.Skips)
}

func (c comparison) compareBundle(p pair[bundle]) (bundleDiff, bool) {
	d := bundleDiff{Name: p.name, Change: p.change()}
	a, b := or(p.old), or(p.new)
	d.Version = cmp.Or(b.version, a.version)
	if c.includes(Images) {
		if a.image != b.image {
			d.Fields = append(d.Fields, fieldDiff{"image", a.image, b.image})
		}
		d.RelatedImages = relatedDiffs(a.related, b.related)
	}
	if c.includes(Properties) {
		d.Properties = propertyDiffs(a.properties, b.properties)
	}
	return d, len(d.Fields)+len(d.Properties)+len(d.RelatedImages) > 0 || d.Change != Changed && c.includes(Bundles)
}

// pointers returns a map of pointers to the values of another map.
func pointers[V any](m map[string]V) map[string]*V {
	out := make(map[string]*V, len(m))
	for k, v := range m {
		out[k] = &v
	}
	return out
}
