package catalog

import (
	"context"
	"strings"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// takeOut returns the edit that removes packages, channels (PACKAGE/CHANNEL), and bundles of channels
// (PACKAGE/CHANNEL/BUNDLE).
func (o *EditOptions) takeOut(texts []string) (change.Edit, error) {
	var packages []string
	var items []edit.Item
	for _, text := range texts {
		parts := strings.SplitN(text, "/", 3)
		for _, part := range parts {
			if part == "" {
				return change.Edit{}, cmdline.Usagef("invalid argument %q, expected PACKAGE, PACKAGE/CHANNEL or "+
					"PACKAGE/CHANNEL/BUNDLE", text)
			}
		}
		switch len(parts) {
		case 1:
			packages = append(packages, text)
		case 2:
			items = append(items, edit.Item{Package: parts[0], Channel: parts[1]})
		default:
			items = append(items, edit.Item{Package: parts[0], Channel: parts[1], Bundle: parts[2]})
		}
	}
	if len(items) == 0 {
		return o.Remove(packages), nil
	}
	if o.permissive {
		return change.Edit{}, cmdline.Usagef("--permissive skips missing packages only: it does not go with channels")
	}
	return change.Edit{Whole: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			near := hint.NearPackage(s.Catalog)
			catalog, account, err := near(edit.Remove(s.Catalog, packages, edit.RemoveOptions{}))
			if err != nil {
				return nil, nil, err
			}
			catalog, second, err := near(edit.TakeOut(catalog, items, edit.TakeOutOptions{}))
			if err != nil {
				return nil, nil, err
			}
			return catalog, joinAccounts(account, second), nil
		}}, nil
}

// demote takes the named bundles, as in [bundleNames], out of channels.
func (o *EditOptions) demote(bundles, channels []string) change.Edit {
	return change.Edit{Whole: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			names, err := bundleNames(s.Catalog, bundles)
			if err != nil {
				return nil, nil, err
			}
			catalog, account, err := hint.NearPackage(s.Catalog)(edit.TakeOut(s.Catalog,
				edit.InChannels(names, channels), edit.TakeOutOptions{Demote: true}))
			if err == nil {
				o.undo = undoDemote(edit.UndoDemotion(s.Catalog, catalog, names, channels))
			}
			return catalog, account, err
		}}
}
