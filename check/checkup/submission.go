package checkup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/check/submission"
	"github.com/operator-bindery/bindery/internal/fault"
)

// ErrSubmission is the error for options that are for repositories of operators, and a reference that is no part of one.
var ErrSubmission = fault.New(fault.Input, "this is no part of a repository of operators")

// ErrAlone is the error for options that are for a catalog or a bundle alone, and a part of a repository of operators.
var ErrAlone = fault.New(fault.Usage, "images, upgrades, the released catalog and snapshots are looked at for a catalog or a "+
	"bundle alone")

// Profiles returns the profiles by which a reference is checked without any: in a repository of operators that of its
// config.yaml.
func Profiles(ref string) ([]rules.Profile, error) {
	if place, err := submission.Find(ref); err == nil && place.Kind != submission.None {
		profile, err := place.Profile()
		switch {
		case err != nil:
			return nil, err
		case profile != "":
			return []rules.Profile{profile}, nil
		case place.Kind == submission.Whole || place.Kind == submission.OperatorOf:
			return nil, submission.ErrNoProfile
		}
	}
	return []rules.Profile{rules.OPM, rules.OLMv1}, nil
}

func isPipeline(p rules.Profile) bool { return slices.Contains(rules.Pipelines(), p) }

// submission returns the part of a repository that a reference is, if one of the profiles is about such parts.
func (o *Options) submission(ref string) (place submission.Place, ok bool) {
	if !slices.ContainsFunc(o.Profiles, isPipeline) {
		return place, false
	}
	place, err := submission.Find(ref)
	return place, err == nil && place.Kind != submission.None
}

// InRepository reports whether a reference is checked as a part of a repository of operators.
func (o *Options) InRepository(ref string) bool {
	_, ok := o.submission(ref)
	return ok
}

// submitted checks a part of a repository of operators.
func (c *checkup) submitted(ctx context.Context, ref string, place submission.Place) (_ *rules.Report, err error) {
	if c.Upgrades || c.From != "" || c.Pull || c.Released != "" || c.Snapshot != nil {
		return nil, ErrAlone
	}
	if c.AllBundles && place.Kind != submission.Whole && place.Kind != submission.OperatorOf {
		return nil, fmt.Errorf("%q: %w, of which all bundles could be checked", ref, ErrSubmission)
	}
	root, err := os.OpenRoot(place.Root)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	o := submission.Options{AllBundles: c.AllBundles, Jobs: c.Jobs, Request: c.Request}
	if c.Progress != nil {
		o.Progress = func(done, all int) { c.Progress(done, all) }
	}
	if slices.ContainsFunc(c.Profiles, func(p rules.Profile) bool { return !isPipeline(p) }) {
		o.Bundle = func(ctx context.Context, run *rules.Run, fsys fs.FS, b *bundle.Bundle) error {
			return bundlecheck.CheckRules(ctx, run, bundlecheck.Subject{FS: fsys, Bundle: b, Settings: c.Settings, APIs: c.APIs})
		}
		o.Catalog = func(ctx context.Context, run *rules.Run, fsys fs.FS) error {
			own := *c
			own.run, own.inRepository, own.Options.Progress = run, true, nil
			return own.catalog(ctx, fsys, nil, nil)
		}
	}
	if err := submission.Open(root.FS()).Check(ctx, c.run, place, o); err != nil {
		return nil, err
	}
	scope := map[submission.Kind]rules.Scope{submission.Whole: rules.OnRepository, submission.OperatorOf: rules.OnOperator,
		submission.BundleOf: rules.OnBundle, submission.CatalogOf: rules.OnCatalog}[place.Kind]
	report := c.run.Report(ref, scope)
	report.Root = place.Root
	return report, nil
}
