package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// None is the list of packages for edits that need no manifests.
func None() []string { return []string{} }

// RemoveEdit returns the edit that removes packages.
func RemoveEdit(p *option.Session, c *cli.Context, packages []string) (change.Edit, error) {
	o := edit.RemoveOptions{Permissive: c.Bool("permissive")}
	return change.Edit{Whole: None(), Scope: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			return program.NearPackage(s.Catalog)(edit.Remove(s.Catalog, packages, o))
		}}, nil
}

// PruneEdit returns the edit that removes all packages except the named ones. opm may write an empty catalog; the other
// commands refuse that.
func PruneEdit(p *option.Session, c *cli.Context, keep []string) (change.Edit, error) {
	permissive := p.Opm || c.Bool("permissive")
	return change.Edit{Whole: None(), Scope: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			catalog, account, err := edit.Prune(s.Catalog, keep)
			if err != nil || permissive || len(catalog.Packages) > 0 || len(s.Catalog.Packages) == 0 {
				return catalog, account, err
			}
			return nil, nil, &cmdline.Error{Class: cmdline.ClassInput,
				Hint: "\"list packages\" shows the packages; --permissive removes them all",
				Err:  fmt.Errorf("the catalog has none of the packages to keep: %v: %w", keep, edit.ErrNotFound)}
		}}, nil
}

// PruneStrandedEdit removes the bundles that are in no channel.
func PruneStrandedEdit() (change.Edit, error) { return change.PruneStranded(), nil }

// TruncateFlags are the flags of the commands that remove everything below a deprecated bundle.
func TruncateFlags() []cli.Flag {
	return []cli.Flag{
		PermissiveFlag(),
		&cli.BoolFlag{Name: "allow-package-removal", Usage: "remove a package if all its channel heads are deprecated"},
	}
}

// TruncateEdit returns the edit that deprecates bundles, given by image or as PACKAGE/NAME, and removes everything
// below them.
func TruncateEdit(p *option.Session, c *cli.Context, bundles []string) (change.Edit, error) {
	o := edit.TruncateOptions{AllowPackageRemoval: c.Bool("allow-package-removal"), Permissive: c.Bool("permissive"),
		AnyImages: p.Opm}
	return change.Edit{Whole: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			return edit.DeprecateTruncate(s.Catalog, bundles, o)
		}}, nil
}

// ListEdit is the action of an edit that a list flag is required for. apply prepares and carries out the edit.
func ListEdit(apply func(*cli.Context, func() (change.Edit, error)) error, flag string,
	edit func(*cli.Context, []string) (change.Edit, error)) cli.ActionFunc {
	return func(c *cli.Context) error {
		list, err := requiredList(c, flag)
		if err != nil {
			return err
		}
		return apply(c, func() (change.Edit, error) { return edit(c, list) })
	}
}

// requiredList reads a list flag that must be set and not empty.
func requiredList(c *cli.Context, name string) ([]string, error) {
	list, err := program.ListFlag(c, name)
	if err != nil {
		return nil, err
	}
	if !c.IsSet(name) {
		return nil, cmdline.Usagef("required flag(s) %q not set", name)
	}
	if len(list) == 0 {
		return nil, cmdline.Usagef("--%s is empty", name)
	}
	return slices.Compact(list), nil
}
