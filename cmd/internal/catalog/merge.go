package catalog

import (
	"context"
	"errors"
	"slices"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// merge reads the other catalogs (directories, databases or images) and returns the edit that merges them.
func (o *EditOptions) merge(ctx context.Context, p *option.Session, others []string, replace bool) (change.Edit, error) {
	with, err := o.bundles().Options(ctx, p)
	if err != nil {
		return change.Edit{}, err
	}
	with.Allow = option.CatalogKinds()
	level, err := o.addedLevel()
	if err != nil {
		return change.Edit{}, err
	}
	if err := o.CheckAccount(others...); err != nil {
		return change.Edit{}, err
	}
	catalogs := make([]*declcfg.Catalog, len(others))
	errs := make([]error, len(others))
	whole := None()
	for i, ref := range others {
		blobs, err := with.Render(ctx, ref)
		if err == nil {
			catalogs[i], err = declcfg.Collect(blobs)
		}
		if errs[i] = err; err != nil {
			continue
		}
		for j := range catalogs[i].Packages {
			whole = append(whole, catalogs[i].Packages[j].Name)
		}
		for j := range catalogs[i].Bundles {
			whole = append(whole, catalogs[i].Bundles[j].Package)
		}
		slices.Sort(whole)
		whole = slices.Compact(whole)
	}
	if err := errors.Join(errs...); err != nil {
		return change.Edit{}, p.OpmMessage(err)
	}
	return change.Edit{Whole: whole,
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			for _, other := range catalogs {
				for i := range other.Bundles {
					if err := applyLevel(&other.Bundles[i], level, s); err != nil {
						return nil, nil, err
					}
				}
			}
			return edit.Merge(append([]*declcfg.Catalog{s.Catalog}, catalogs...), edit.MergeOptions{Replace: replace})
		}}, nil
}
