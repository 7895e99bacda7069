package catalog

import (
	"context"
	"fmt"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// None is the list of packages for edits that need no manifests.
func None() []string { return []string{} }

// Remove returns the edit that removes packages.
func (o *EditOptions) Remove(packages []string) change.Edit {
	with := edit.RemoveOptions{Permissive: o.permissive}
	return change.Edit{Whole: None(), Scope: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			return hint.NearPackage(s.Catalog)(edit.Remove(s.Catalog, packages, with))
		}}
}

// Prune returns the edit that removes all packages except the named ones. opm may write an empty catalog; the other
// commands refuse that.
func (o *EditOptions) Prune(p *option.Session, keep []string) change.Edit {
	permissive := p.Opm || o.permissive
	return change.Edit{Whole: None(), Scope: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			catalog, account, err := edit.Prune(s.Catalog, keep)
			if err != nil || permissive || len(catalog.Packages) > 0 || len(s.Catalog.Packages) == 0 {
				return catalog, account, err
			}
			return nil, nil, &cmdline.Error{Class: cmdline.ClassInput,
				Hint: "\"list packages\" shows the packages; --permissive removes them all",
				Err:  fmt.Errorf("the catalog has none of the packages to keep: %v: %w", keep, edit.ErrNotFound)}
		}}
}

// TruncateFlags are the flags of the commands that remove everything below a deprecated bundle.
func (o *EditOptions) TruncateFlags() []cli.Flag {
	return []cli.Flag{
		o.PermissiveFlag(),
		&cli.BoolFlag{Name: "allow-package-removal", Usage: "remove a package if all its channel heads are deprecated",
			Destination: &o.allowPackageRemoval},
	}
}

// Truncate returns the edit that deprecates bundles, given by image or as PACKAGE/NAME, and removes everything
// below them.
func (o *EditOptions) Truncate(p *option.Session, bundles []string) change.Edit {
	with := o.truncation(p)
	return change.Edit{Whole: None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			return edit.DeprecateTruncate(s.Catalog, bundles, with)
		}}
}

func (o *EditOptions) truncation(p *option.Session) edit.TruncateOptions {
	return edit.TruncateOptions{AllowPackageRemoval: o.allowPackageRemoval, Permissive: o.permissive, AnyImages: p.Opm}
}

// WithList is the action of an edit that needs the values of a list flag, each of them once if the same ones stand in a row.
func WithList(p *option.Session, flag string, given *cli.StringSlice,
	run func(ctx context.Context, args, list []string) error) cli.ActionFunc {
	return p.Action(func(ctx context.Context, args []string) error {
		list, err := program.Values(given.Value())
		switch {
		case err != nil:
			return err
		case !p.Given(flag):
			return cmdline.Usagef("required flag(s) %q not set", flag)
		case len(list) == 0:
			return cmdline.Usagef("--%s is empty", flag)
		}
		return run(ctx, args, slices.Compact(list))
	})
}
