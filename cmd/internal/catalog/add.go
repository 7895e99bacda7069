package catalog

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
)

// levelAuto migrates added bundles to the level of the other bundles of their package.
const levelAuto = "auto"

// AddFlags are the flags of the commands that add bundles. opm hides two of them.
func (o *EditOptions) AddFlags(hide bool) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "mode", Destination: &o.mode, Value: string(edit.Replaces),
			Usage: "`MODE` of adding bundles to the upgrade graph (replaces|semver|semver-skippatch)"},
		o.PermissiveFlag(),
		&cli.BoolFlag{Name: "overwrite-latest", Destination: &o.overwriteLatest, Usage: "replace a bundle of the same name if it is a channel head",
			Hidden: hide},
		&cli.BoolFlag{Name: "enable-alpha", Destination: &o.enableAlpha, Usage: "allow bundles to substitute for others (olm.substitutesFor)",
			Hidden: hide},
		&cli.BoolFlag{Name: "keep-manifests", Destination: &o.keepManifests,
			Usage: "keep in a database the manifests of bundles that are no heads, which modes semver and " +
				"semver-skippatch remove"},
		&cli.StringFlag{Name: "image-ref-template", Destination: &o.imageTemplate,
			Usage: "image reference `TEMPLATE` for bundles that come from no registry; may use {{.Package}}, " +
				"{{.Name}} and {{.Version}}"},
		&cli.BoolFlag{Name: "resolve-digests", Destination: &o.resolveDigests, Usage: "replace the tags of bundle images by digests"},
		o.addedLevelFlag(),
	}
}

// addedLevelFlag is the migration level of added bundles.
func (o *EditOptions) addedLevelFlag() cli.Flag {
	return &cli.StringFlag{Name: "migrate-level", Value: levelAuto, Destination: &o.MigrateLevel,
		Usage: "migrate bundles added to a directory (auto|none|bundle-object-to-csv-metadata); auto keeps the form " +
			"of their package"}
}

// addedLevel reads the flag.
func (o *EditOptions) addedLevel() (string, error) {
	level := o.MigrateLevel
	if level != levelAuto {
		if _, err := edit.ParseLevel(level); err != nil {
			return "", &cmdline.Error{Class: cmdline.ClassUsage, Object: level, Err: err}
		}
	}
	return level, nil
}

// Add fetches bundles and returns the edit that adds them. refs are images of every transport, layouts, archives
// and directories.
func (o *EditOptions) Add(ctx context.Context, p *option.Session, refs []string) (change.Edit, error) {
	mode, err := edit.ParseMode(o.mode)
	if err != nil {
		return change.Edit{}, modeError(p, o.mode)
	}
	level, err := o.addedLevel()
	if err != nil {
		return change.Edit{}, err
	}
	if err := o.CheckAccount(); err != nil {
		return change.Edit{}, err
	}
	with := edit.AddOptions{
		Mode: mode, OverwriteLatest: o.overwriteLatest, SubstitutesFor: o.enableAlpha,
		Permissive: o.permissive, AnyImages: p.Opm,
	}
	additions, unread, err := o.fetchAdditions(ctx, p, refs)
	if err != nil {
		return change.Edit{}, err
	}
	var packages []string
	for i := range additions {
		packages = append(packages, additions[i].Bundle.Package)
	}
	e := change.Edit{Whole: None(), Manifests: packages,
		HeadManifests: mode != edit.Replaces && !o.keepManifests}
	e.Apply = func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		for i := range additions {
			if err := applyLevel(additions[i].Bundle, level, s); err != nil {
				return nil, nil, err
			}
		}
		with.Origins, with.Manifests = s.Origins, s.Manifests
		catalog, account, err := edit.Add(s.Catalog, additions, with)
		if err != nil {
			return nil, nil, addStatus(err)
		}
		account.Problems = append(unread, account.Problems...)
		account.Notes = append(account.Notes, unreferenced(additions)...)
		return catalog, account, nil
	}
	return e, nil
}

// unreferenced returns notices about bundles that no cluster can pull.
func unreferenced(additions []edit.Addition) []edit.Problem {
	var notes []edit.Problem
	for _, a := range additions {
		if a.Bundle.Image == "" {
			notes = append(notes, edit.Problem{Package: a.Bundle.Package, Bundle: a.Bundle.Name,
				Message: fmt.Sprintf(
					"bundle %q comes from no registry and has no image reference: set --image-ref-template",
					a.Bundle.Name)})
		}
	}
	return notes
}

// errUnreferenced is the error of a bundle that no cluster could pull.
func errUnreferenced(name string) error {
	return &cmdline.Error{Class: cmdline.ClassUsage, Object: name,
		Err:  fmt.Errorf("no cluster could pull the bundle %q: it comes from no registry", name),
		Hint: "name its image with --image-ref-template REGISTRY/NAME:v{{.Version}}, or add the image in place of its files"}
}

// modeError returns the error about an invalid --mode.
func modeError(p *option.Session, mode string) error {
	if p.Opm {
		return cmdline.Usagef("Invalid channel update mode %s specified", mode) //nolint:staticcheck // opm's text
	}
	e := cmdline.Usagef("invalid --mode value %q, expected (replaces|semver|semver-skippatch)", mode)
	e.Object = mode
	return e
}

// fetchAdditions reads the bundles concurrently. A bundle that cannot be read is an error, or a problem in permissive
// mode.
func (o *EditOptions) fetchAdditions(ctx context.Context, p *option.Session, refs []string) (
	[]edit.Addition, []edit.Problem, error) {
	if len(refs) == 0 {
		return nil, nil, nil
	}
	with, err := o.bundles().Options(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	with.KeepGoing = o.permissive
	progress := p.Progress()
	defer progress.Close()
	var fetched atomic.Int64
	additions, err := render.Bundles(ctx, refs, with, func(b render.FetchedBundle) (edit.Addition, error) {
		progress.Set(cmdline.State{What: "reading", Done: int(fetched.Add(1)), All: len(refs), Units: "bundles"})
		if b.Image == "" && o.referenced && !b.PackageManifests {
			return edit.Addition{}, errUnreferenced(b.Bundle.CSV.Name)
		}
		return edit.NewAddition(b.Bundle, b.Image)
	})
	var failed interface{ Unwrap() []error }
	switch {
	case err == nil:
		return additions, nil, nil
	case !o.permissive, ctx.Err() != nil, !errors.As(err, &failed):
		return nil, nil, p.OpmMessage(err)
	}
	var unread []edit.Problem
	for _, err := range failed.Unwrap() {
		problem := edit.Problem{Message: err.Error(), Kind: err}
		var of *render.ReferenceError
		if errors.As(err, &of) {
			problem.Image = redact.Text(of.Reference)
		}
		unread = append(unread, problem)
	}
	return additions, unread, nil
}

// applyLevel migrates a bundle to its level in the catalog.
func applyLevel(b *declcfg.Bundle, level string, s *change.State) error {
	to := edit.Level(level)
	switch {
	case s.Kind == change.Database && level != levelAuto && to != edit.LevelNone:
		return cmdline.Usagef("invalid --migrate-level value %q: a database holds the manifests of bundles", level)
	case s.Kind == change.Database:
		return nil
	case level == levelAuto && s.MetadataOnly(b.Package):
		to = edit.LevelCSVMetadata
	case level == levelAuto:
		to = edit.LevelNone
	}
	if err := to.Apply(b); err != nil {
		return fmt.Errorf("bundle %q: %w", b.Name, err)
	}
	return nil
}
