package catalog

import (
	"context"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// takeOutEdit returns the edit that removes packages, channels (PACKAGE/CHANNEL), and bundles of channels
// (PACKAGE/CHANNEL/BUNDLE).
func takeOutEdit(p *option.Session, c *cli.Context, texts []string) (change.Edit, error) {
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
		return RemoveEdit(p, c, packages)
	}
	if c.Bool("permissive") {
		return change.Edit{}, cmdline.Usagef("--permissive skips missing packages only: it does not go with channels")
	}
	return change.Edit{Whole: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			near := program.NearPackage(s.Catalog)
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

// demoteEdit takes the bundles that the arguments name, as in [bundleNames], out of channels.
func demoteEdit(p *option.Session, c *cli.Context, channels []string) (change.Edit, error) {
	bundles := c.Args().Tail()
	return change.Edit{Whole: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			names, err := bundleNames(s.Catalog, bundles)
			if err != nil {
				return nil, nil, err
			}
			catalog, account, err := program.NearPackage(s.Catalog)(edit.TakeOut(s.Catalog,
				inChannels(names, channels), edit.TakeOutOptions{Demote: true}))
			if err == nil {
				p.UndoDemote = undoDemote(s.Catalog, catalog, names, channels)
			}
			return catalog, account, err
		}}, nil
}

// inChannels returns each of the bundles in each of the channels.
func inChannels(names []edit.Name, channels []string) (items []edit.Item) {
	for _, n := range names {
		for _, channel := range channels {
			items = append(items, edit.Item{Package: n.Package, Channel: channel, Bundle: n.Bundle})
		}
	}
	return items
}
