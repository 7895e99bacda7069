package change

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/sqlite"
)

// reader is where a catalog is read from.
type reader interface {
	kind() Kind
	// load returns the catalog, with what is wanted of it. It is the caller's own, but for what no edit changes in place.
	load(context.Context, wants) (*declcfg.Catalog, error)
	// blobs yields the wanted packages with everything in them, in writing order; blobs of no package come last, under the
	// empty name. A blob is valid until the next one is asked for.
	blobs(ctx context.Context, wanted func(pkg string) bool) iter.Seq2[declcfg.Blob, error]
	// beyond is what the source holds beyond the catalog.
	beyond(context.Context) (*beyond, error)
}

// beyond is what a database holds and a catalog does not.
type beyond struct {
	origins  edit.Origins
	stranded []sqlite.Stranded
	findings []sqlite.Finding
	broken   []broken
}

// broken is a package that was left out of a catalog.
type broken struct{ name, reason string }

// wants is what of the bundles an edit wants to see. The others are reduced.
type wants struct {
	all              bool
	whole, manifests map[string]bool // packages
	scope            map[string]bool // packages; nil for all
	see              func(*declcfg.Bundle)
}

func (w wants) nothing() bool { return !w.all && len(w.whole)+len(w.manifests) == 0 }

// any reports whether something of a package is wanted. A caller of whole packages may compare no blobs at all.
func (w wants) any(pkg string) bool {
	return w.all || w.whole[pkg] || w.manifests[pkg] || pkg == "" && len(w.whole) > 0
}

// look shows a bundle whose manifests are wanted.
func (w wants) look(b *declcfg.Bundle) {
	if w.manifests[b.Package] {
		w.see(b)
	}
}

// newState reads what an edit wants to see.
func newState(ctx context.Context, r reader, e Edit) (*State, *beyond, error) {
	s := &State{Manifests: edit.Manifests{}, Kind: r.kind()}
	icons := icons{}
	w := wants{all: e.Whole == nil, whole: set(e.Whole), manifests: set(e.Manifests), see: func(b *declcfg.Bundle) {
		s.Manifests[edit.Name{Package: b.Package, Bundle: b.Name}] = icons.read(b)
	}}
	if e.Scope != nil {
		w.scope = set(e.Scope)
	}
	c, err := r.load(ctx, w)
	if err != nil {
		return nil, nil, err
	}
	b, err := r.beyond(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.Catalog, s.Origins, s.Stranded, s.MetadataOnly = c, b.origins, b.stranded, metadataOnly(c)
	for _, p := range b.broken {
		c.Packages = append(c.Packages, declcfg.Package{Name: p.name})
	}
	return s, b, nil
}

// icons are those of manifests by digest: most bundles of a package have the same.
type icons map[digest.Digest]*declcfg.Icon

// read reads the manifests of a bundle.
func (i icons) read(b *declcfg.Bundle) *edit.Manifest {
	m := edit.ReadManifest(b)
	if m != nil && m.Icon != nil {
		d := digest.FromString(m.Icon.MediaType + "\x00" + string(m.Icon.Data))
		if i[d] == nil {
			i[d] = m.Icon
		}
		m.Icon = i[d]
	}
	return m
}

// fill puts manifests into a skeleton. The blobs need not stay valid.
func (w wants) fill(c *declcfg.Catalog, blobs iter.Seq2[declcfg.Blob, error]) error {
	places := map[edit.Name][]int{} // a name may be there twice in a catalog that is broken
	for i := range c.Bundles {
		name := edit.Name{Package: c.Bundles[i].Package, Bundle: c.Bundles[i].Name}
		places[name] = append(places[name], i)
	}
	for blob, err := range blobs {
		if err != nil {
			return err
		}
		b, ok := blob.(*declcfg.Bundle)
		if !ok {
			continue
		}
		w.look(b)
		if !w.all && !w.whole[b.Package] {
			continue
		}
		name := edit.Name{Package: b.Package, Bundle: b.Name}
		at := places[name]
		if len(at) == 0 {
			return fmt.Errorf("package %q: bundle %q was not there before", b.Package, b.Name)
		}
		places[name] = at[1:]
		full, err := c.Bundles[at[0]].Restored(b)
		if err != nil {
			return err
		}
		for i := range full.Properties {
			full.Properties[i].Value = slices.Clone(full.Properties[i].Value)
		}
		c.Bundles[at[0]] = *full
	}
	return nil
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, name := range names {
		out[name] = true
	}
	return out
}

// metadataOnly makes the function of that name of a state.
func metadataOnly(c *declcfg.Catalog) func(string) bool {
	type counts struct{ objects, metadata int }
	byPackage := map[string]*counts{}
	var all counts
	for i := range c.Bundles {
		b := &c.Bundles[i]
		n := byPackage[b.Package]
		if n == nil {
			n = &counts{}
			byPackage[b.Package] = n
		}
		has := func(typ string) bool {
			return slices.ContainsFunc(b.Properties, func(p declcfg.Property) bool { return p.Type == typ })
		}
		switch {
		case b.HasObjects || has(declcfg.PropertyBundleObject):
			n.objects++
			all.objects++
		case has(declcfg.PropertyCSVMetadata):
			n.metadata++
			all.metadata++
		}
	}
	return func(pkg string) bool {
		if n := byPackage[pkg]; n != nil && n.objects+n.metadata > 0 {
			return n.objects == 0
		}
		return all.metadata > all.objects
	}
}
