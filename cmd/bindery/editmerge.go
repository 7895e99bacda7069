package main

import (
	"context"
	"errors"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// mergeEdit reads the other catalogs (directories, databases or images) and returns the edit that merges them.
func (p *program) mergeEdit(c *cli.Context, others []string) (change.Edit, error) {
	o, err := p.bundleOptions(c)
	if err != nil {
		return change.Edit{}, err
	}
	o.Allow = catalogKinds()
	level, err := addedLevel(c)
	if err != nil {
		return change.Edit{}, err
	}
	if err := p.checkAccount(c, others...); err != nil {
		return change.Edit{}, err
	}
	catalogs := make([]*declcfg.Catalog, len(others))
	errs := make([]error, len(others))
	whole := none()
	for i, ref := range others {
		blobs, err := o.Render(c.Context, ref)
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
		return change.Edit{}, p.opmMessage(err)
	}
	replace := c.Bool("replace")
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
