package option

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// WithoutImage refuses the flags that are for images only.
func WithoutImage(p *Session, all []cli.Flag, hint string) error {
	for _, f := range all {
		if name := f.Names()[0]; name != "platform" && p.GivenHere(name) {
			e := cmdline.Usagef("--%s requires an image as output", name)
			e.Hint = hint
			return e
		}
	}
	return nil
}

func NotCatalogDirectory(path string) error {
	return &cmdline.Error{Class: cmdline.ClassInput, Object: path,
		Err:  fmt.Errorf("%q is a bundle directory, not a catalog", path),
		Hint: "name the catalog first, then the bundles"}
}

// NotEdited refuses package manifests, which cannot be edited.
func NotEdited(path string) error {
	return &cmdline.Error{Class: cmdline.ClassInput, Object: path,
		Err:  fmt.Errorf("%q holds package manifests, not a catalog", path),
		Hint: "convert them with \"migrate DIR OUT\", or add them to an existing catalog"}
}

// Bundles is how the bundles and catalogs to add are read.
type Bundles struct {
	Images
	Jobs           int
	ResolveDigests bool
	ImageTemplate  string // --image-ref-template
}

// Options returns the options for reading them.
func (o *Bundles) Options(ctx context.Context, p *Session) (render.Options, error) {
	with := render.Options{Jobs: o.Jobs, Warn: p.WarnAt, Opened: p.opened, ResolveDigests: o.ResolveDigests}
	var err error
	if with.Images, err = p.Client(ctx, &o.Images); err != nil {
		return with, err
	}
	if with.ImageLimits, err = o.Limits(); err != nil {
		return with, err
	}
	if o.ImageTemplate != "" {
		if with.ImageTemplate, err = render.ParseImageTemplate(o.ImageTemplate); err != nil {
			return with, cmdline.Usagef("invalid --image-ref-template %q: %w", o.ImageTemplate, err)
		}
	}
	return with, nil
}

// Edited is the index or catalog that is edited.
type Edited struct {
	Lossy, KeepGoing bool
	OutputFormat     string
}

// OutputKind returns the kind of catalog that --output-format names.
func (o *Edited) OutputKind(otherwise change.Kind) (change.Kind, error) {
	switch f := o.OutputFormat; f {
	case "":
		return otherwise, nil
	case "fbc":
		return change.Directory, nil
	case "sqlite":
		return change.Database, nil
	default:
		return "", cmdline.Usagef("invalid --output-format value %q, expected (fbc|sqlite)", f)
	}
}

// OpenIndex opens the index to edit. begun is the kind of a new index.
func (o *Edited) OpenIndex(ctx context.Context, p *Session, bundles *Bundles, from string, begun change.Kind) (*indeximage.Index, error) {
	if from == "" {
		kind, err := o.OutputKind(begun)
		return indeximage.Empty(kind), err
	}
	kind, err := render.Classify(from)
	switch {
	case err != nil:
		return nil, err
	case kind == render.BundleDirectory:
		return nil, NotCatalogDirectory(from)
	case kind == render.ManifestsDirectory:
		return nil, NotEdited(from)
	}
	with := indeximage.Options{Change: change.Options{
		Jobs: bundles.Jobs, Lossy: o.Lossy, KeepGoing: o.KeepGoing, Warn: p.WarnAt, Reuse: true,
		AnyImages: p.Opm,
	}}
	if kind == render.Image {
		if with.Render, err = bundles.Options(ctx, p); err != nil {
			return nil, err
		}
	}
	index, err := indeximage.Open(ctx, from, with)
	var reference *render.ReferenceError
	if errors.As(err, &reference) {
		err = p.notAnIndex(from, err)
	}
	return index, err
}

// notAnIndex returns the error for an image that cannot be edited.
func (p *Session) notAnIndex(ref string, err error) error {
	if errors.Is(err, render.ErrNotAllowed) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref,
			Err:  fmt.Errorf("%q is not an index image: %w", redact.Text(ref), err),
			Hint: "an index image has one of the labels " + build.ConfigsLabel + " and " + build.DatabaseLabel}
	}
	return p.OpmMessage(err)
}

// ListLoader reads a catalog for tables that need the manifests of bundles.
type ListLoader func(iter.Seq2[declcfg.Blob, error]) (*list.Listing, error)

// ListingOf reads the catalog that a reference names. If packages are given, only these are read from a file-based
// catalog. If load is nil, manifests of bundles are not read.
func (o *Reading) ListingOf(ctx context.Context, p *Session, ref string, load ListLoader, packages ...string) (*list.Listing, error) {
	with, err := o.Options(ctx, p, p.Command.Args().Slice()...)
	if err != nil {
		return nil, err
	}
	with.Allow, with.Packages = CatalogKinds(), packages
	if load == nil {
		with.Skeleton, load = true, list.Load
	}
	blobs, err := with.Render(ctx, ref)
	if err != nil {
		return nil, p.OpmMessage(NotCatalog(ref, err))
	}
	l, err := load(blobs)
	if err != nil {
		return nil, p.OpmMessage(NotCatalog(ref, err))
	}
	return l, nil
}

// Catalogs is what a catalog becomes while it is read.
type Catalogs struct {
	MigrateLevel, CompatWith string
	AllowEmpty               bool
}

// Reading is how references are read.
type Reading struct {
	Images
	Catalogs
	Jobs int
}

// Flags are the flags of every command that reads references.
func (o *Reading) Flags() []cli.Flag {
	return append([]cli.Flag{JobsFlag(&o.Jobs, "work"), o.PlatformFlag()}, o.Images.Flags()...)
}

// CompatFlag selects another program's answer where bindery's is different on purpose.
func (o *Catalogs) CompatFlag(group string) cli.Flag {
	return &cli.StringFlag{Name: "compat", Category: group, Destination: &o.CompatWith,
		Usage: "reproduce the output of another `PROGRAM`, including its losses (opm)"}
}

// LevelFlag selects the migration level of bundles.
func (o *Catalogs) LevelFlag(group string) cli.Flag {
	return &cli.StringFlag{Name: "migrate-level", Value: "none", Category: group, Destination: &o.MigrateLevel,
		Usage: "apply all migrations up to `LEVEL` (none|bundle-object-to-csv-metadata)"}
}

// AllowEmptyFlag accepts a catalog without packages.
func (o *Catalogs) AllowEmptyFlag(category string) cli.Flag {
	return &cli.BoolFlag{Name: "allow-empty", Usage: "accept a catalog that holds no packages, in place of an error",
		Category: category, Destination: &o.AllowEmpty}
}

// JobsFlag bounds concurrent work.
func JobsFlag(at *int, group string) cli.Flag {
	return &cli.IntFlag{
		Name: "jobs", Usage: "run up to `N` jobs in parallel; 0 means one per CPU", EnvVars: program.Env("jobs"),
		Destination: at, Category: group,
		Action: func(_ *cli.Context, n int) error {
			if n < 0 {
				return cmdline.Usagef("invalid --jobs value %d, expected a positive number or 0", n)
			}
			return nil
		},
	}
}

// CatalogKinds are the kinds of references with a catalog.
func CatalogKinds() []render.Kind {
	return []render.Kind{render.CatalogDirectory, render.ManifestsDirectory, render.CatalogImage, render.Database,
		render.DatabaseImage}
}

// NotCatalog returns opm's message for a bundle, which cannot be listed.
func NotCatalog(ref string, err error) error {
	if errors.Is(err, render.ErrNotAllowed) {
		return fmt.Errorf("cannot list non-index %q", ref)
	}
	return err
}

// Options returns how references are read.
func (o *Catalogs) Options(ctx context.Context, p *Session, from *Images, jobs int, refs ...string) (render.Options, error) {
	with := render.Options{Jobs: jobs, Warn: p.WarnAt, Opened: p.opened,
		Read: p.Loading(refs...), Progress: p.LoadingDatabases()}
	var err error
	if with.Images, err = p.Client(ctx, from); err != nil {
		return with, err
	}
	if with.ImageLimits, err = from.Limits(); err != nil {
		return with, err
	}
	if with.Level, err = edit.ParseLevel(o.MigrateLevel); err != nil {
		return with, &cmdline.Error{Class: cmdline.ClassUsage, Object: o.MigrateLevel, Err: err}
	}
	with.Compat, err = o.Compat(p)
	return with, err
}

// Options returns how references are read.
func (o *Reading) Options(ctx context.Context, p *Session, refs ...string) (render.Options, error) {
	return o.Catalogs.Options(ctx, p, &o.Images, o.Jobs, refs...)
}

// Compat reads --compat. Under the name opm it defaults to opm's answers.
func (o *Catalogs) Compat(p *Session) (sqlite.Compat, error) {
	switch o.CompatWith {
	case "opm":
		return sqlite.CompatOPM, nil
	case "":
		if p.Opm {
			return sqlite.CompatOPM, nil
		}
		return sqlite.CompatNone, nil
	}
	return "", cmdline.Usagef("invalid --compat value %q, expected (opm)", o.CompatWith)
}

// opened logs an image that was opened.
func (p *Session) opened(i render.OpenedImage) {
	if p.Opm {
		return
	}
	p.Log.Info(fmt.Sprintf("%s %s", i.Kind, i.Digest))
}

// PackageArgument takes the name of a package out of the arguments CATALOG [PACKAGE]. The second argument may also name
// another catalog, and so may more arguments.
func PackageArgument(args []string) (refs []string, pkg string) {
	if len(args) != 2 || namesCatalog(args[1]) {
		return args, ""
	}
	return args[:1], args[1]
}

// namesCatalog reports whether a text can be the reference of a catalog and not the name of a package.
func namesCatalog(text string) bool {
	kind, err := render.Classify(text)
	switch {
	case err != nil || strings.ContainsAny(text, "/:"):
		return true
	case kind == render.Image:
		return render.CheckName(text) == nil
	}
	return slices.Contains(CatalogKinds(), kind)
}

// CatalogsAndPackage reads CATALOG... PACKAGE. The package may also come first, if that names no catalog and the last
// argument does.
func CatalogsAndPackage(args []string) (catalogs []string, pkg string) {
	last := len(args) - 1
	if args[0] == "" || !namesCatalog(args[0]) && namesCatalog(args[last]) {
		return args[1:], args[0]
	}
	return args[:last], args[last]
}
