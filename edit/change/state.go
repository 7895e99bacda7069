package change

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/sqlite"
)

// reader reads a catalog from its storage.
type reader interface {
	kind() Kind
	// load returns the catalog with the requested detail. The caller may modify it as far as edits modify catalogs in
	// place.
	load(context.Context, wants) (*declcfg.Catalog, error)
	// blobs yields the wanted packages completely and in writing order; blobs without a package come last, under the
	// empty name. A blob is valid until the next one.
	blobs(ctx context.Context, wanted func(pkg string) bool) iter.Seq2[declcfg.Blob, error]
	// extras returns what the source has besides the catalog.
	extras(context.Context) (*extras, error)
}

// extras is the content of a database that is not in the catalog.
type extras struct {
	origins  edit.Origins
	stranded []sqlite.Stranded
	findings []sqlite.Finding
	broken   []broken
}

// broken is an invalid package that was left out of a catalog.
type broken struct{ name, reason string }

// wants says which bundles an edit needs completely or with manifests. The others are reduced.
type wants struct {
	all              bool
	whole, manifests map[string]bool // packages
	scope            map[string]bool // packages; nil for all
	see              func(*declcfg.Bundle)
}

func (w wants) nothing() bool { return !w.all && len(w.whole)+len(w.manifests) == 0 }

// any reports whether bundles of a package are needed beyond the skeleton. The caller may skip unneeded packages.
func (w wants) any(pkg string) bool {
	return w.all || w.whole[pkg] || w.manifests[pkg] || pkg == "" && len(w.whole) > 0
}

// look reads the values of a bundle's manifests if they are wanted.
func (w wants) look(b *declcfg.Bundle) {
	if w.manifests[b.Package] {
		w.see(b)
	}
}

// newState reads the catalog with the detail that the edit asks for.
func newState(ctx context.Context, r reader, e Edit) (*State, *extras, error) {
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
	b, err := r.extras(ctx)
	if err != nil {
		return nil, nil, err
	}
	s.Catalog, s.Origins, s.Stranded, s.MetadataOnly = c, b.origins, b.stranded, metadataOnly(c)
	for _, p := range b.broken {
		c.Packages = append(c.Packages, declcfg.Package{Name: p.name})
	}
	return s, b, nil
}

// icons caches icons by digest: most bundles of a package have the same.
type icons map[digest.Digest]*declcfg.Icon

// read reads the values of a bundle's manifests.
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
	places := map[edit.Name][]int{} // an invalid catalog may repeat a name
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

// metadataOnly returns the function for [State.MetadataOnly].
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
