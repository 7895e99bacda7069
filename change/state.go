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

// reader is where a catalog is read from.
type reader interface {
	kind() Kind
	// skeleton returns the catalog with all bundles reduced. It is the caller's own.
	skeleton(context.Context) (*declcfg.Catalog, error)
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

// newState reads what an edit wants to see.
func newState(ctx context.Context, r reader, e Edit) (*State, *beyond, error) {
	c, err := r.skeleton(ctx)
	if err != nil {
		return nil, nil, err
	}
	b, err := r.beyond(ctx)
	if err != nil {
		return nil, nil, err
	}
	s := &State{Catalog: c, Origins: b.origins, Manifests: edit.Manifests{}, Stranded: b.stranded, Kind: r.kind(), MetadataOnly: metadataOnly(c)}
	if err := s.fill(ctx, r, e); err != nil {
		return nil, nil, err
	}
	for _, p := range b.broken {
		c.Packages = append(c.Packages, declcfg.Package{Name: p.name})
	}
	return s, b, nil
}

// fill reads the manifests that the edit needs.
func (s *State) fill(ctx context.Context, r reader, e Edit) error {
	whole, manifests := set(e.Whole), set(e.Manifests)
	wanted := func(pkg string) bool { return whole[pkg] || manifests[pkg] }
	if e.Whole == nil {
		wanted = nil
	} else if len(whole)+len(manifests) == 0 {
		return nil
	}
	places := map[edit.Name][]int{} // a name may be there twice in a catalog that is broken
	for i := range s.Catalog.Bundles {
		b := &s.Catalog.Bundles[i]
		places[edit.Name{Package: b.Package, Bundle: b.Name}] = append(places[edit.Name{Package: b.Package, Bundle: b.Name}], i)
	}
	icons := map[digest.Digest]*declcfg.Icon{} // most bundles of a package have the same
	for blob, err := range r.blobs(ctx, wanted) {
		if err != nil {
			return err
		}
		b, ok := blob.(*declcfg.Bundle)
		if !ok {
			continue
		}
		name := edit.Name{Package: b.Package, Bundle: b.Name}
		if manifests[b.Package] {
			m := edit.ReadManifest(b)
			if m != nil && m.Icon != nil {
				d := digest.FromString(m.Icon.MediaType + "\x00" + string(m.Icon.Data))
				if icons[d] == nil {
					icons[d] = m.Icon
				}
				m.Icon = icons[d]
			}
			s.Manifests[name] = m
		}
		if e.Whole == nil || whole[b.Package] {
			at := places[name]
			if len(at) == 0 {
				return fmt.Errorf("package %q: bundle %q was not there before", b.Package, b.Name)
			}
			full := &s.Catalog.Bundles[at[0]]
			places[name] = at[1:]
			restored, err := full.Restored(b)
			if err != nil {
				return err
			}
			*full = *restored
			for i := range full.Properties {
				full.Properties[i].Value = slices.Clone(full.Properties[i].Value)
			}
		}
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
