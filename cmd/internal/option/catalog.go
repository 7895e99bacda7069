package option

import (
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// WithoutImage refuses the flags that are for images only.
func WithoutImage(c *cli.Context, all []cli.Flag, hint string) error {
	for _, f := range all {
		if name := f.Names()[0]; name != "platform" && givenHere(c, name) {
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

// BundleOptions returns the options for reading the bundles and catalogs to add, from [AddFlags] and [ImageFlags].
func (p *Session) BundleOptions(c *cli.Context) (render.Options, error) {
	o := render.Options{Jobs: c.Int("jobs"), Warn: p.WarnAt, Opened: p.opened,
		ResolveDigests: c.Bool("resolve-digests")}
	var err error
	if o.Images, err = p.Client(c); err != nil {
		return o, err
	}
	if o.ImageLimits, err = ImageLimits(c); err != nil {
		return o, err
	}
	if text := c.String("image-ref-template"); text != "" {
		if o.ImageTemplate, err = render.ParseImageTemplate(text); err != nil {
			return o, cmdline.Usagef("invalid --image-ref-template %q: %w", text, err)
		}
	}
	return o, nil
}

// OutputKind reads [outputFormatFlag].
func OutputKind(c *cli.Context, otherwise change.Kind) (change.Kind, error) {
	switch f := c.String("output-format"); f {
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
func (p *Session) OpenIndex(c *cli.Context, from string, begun change.Kind) (*indeximage.Index, error) {
	if from == "" {
		kind, err := OutputKind(c, begun)
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
	o := indeximage.Options{Change: change.Options{
		Jobs: c.Int("jobs"), Lossy: c.Bool("lossy"), KeepGoing: c.Bool("keep-going"), Warn: p.WarnAt, Reuse: true,
		AnyImages: p.Opm,
	}}
	if kind == render.Image {
		if o.Render, err = p.BundleOptions(c); err != nil {
			return nil, err
		}
	}
	index, err := indeximage.Open(c.Context, from, o)
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
func (p *Session) ListingOf(c *cli.Context, ref string, load ListLoader, packages ...string) (*list.Listing, error) {
	o, err := p.RenderOptions(c)
	if err != nil {
		return nil, err
	}
	o.Allow, o.Packages = CatalogKinds(), packages
	if load == nil {
		o.Skeleton, load = true, list.Load
	}
	blobs, err := render.Reference(c.Context, ref, o)
	if err != nil {
		return nil, p.OpmMessage(NotCatalog(ref, err))
	}
	l, err := load(blobs)
	if err != nil {
		return nil, p.OpmMessage(NotCatalog(ref, err))
	}
	return l, nil
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

// RenderOptions reads the flags for reading a reference.
func (p *Session) RenderOptions(c *cli.Context) (render.Options, error) {
	o := render.Options{Jobs: c.Int("jobs"), Warn: p.WarnAt, Opened: p.opened,
		Read: p.Loading(c.Args().Slice()...), Progress: p.LoadingDatabases()}
	var err error
	if o.Images, err = p.Client(c); err != nil {
		return o, err
	}
	if o.ImageLimits, err = ImageLimits(c); err != nil {
		return o, err
	}
	if o.Level, err = edit.ParseLevel(c.String("migrate-level")); err != nil {
		return o, &cmdline.Error{Class: cmdline.ClassUsage, Object: c.String("migrate-level"), Err: err}
	}
	o.Compat, err = p.Compat(c)
	return o, err
}

// Compat reads --compat. Under the name opm it defaults to opm's answers.
func (p *Session) Compat(c *cli.Context) (sqlite.Compat, error) {
	switch c.String("compat") {
	case "opm":
		return sqlite.CompatOPM, nil
	case "":
		if p.Opm {
			return sqlite.CompatOPM, nil
		}
		return sqlite.CompatNone, nil
	}
	return "", cmdline.Usagef("invalid --compat value %q, expected (opm)", c.String("compat"))
}

// opened logs an image that was opened.
func (p *Session) opened(i render.OpenedImage) {
	if p.Opm {
		return
	}
	p.Log.Info(fmt.Sprintf("%s %s", i.Kind, i.Digest))
}

// PackageArgument takes the name of a package out of arguments that are references else: the last one, unless it is the
// only one or names a file, a directory or an image.
func PackageArgument(args []string) (refs []string, pkg string) {
	last := len(args) - 1
	if last < 1 || !namesNothing(args[last]) {
		return args, ""
	}
	return args[:last], args[last]
}

// namesNothing reports whether a text is neither a file nor the name of an image, as the name of a package is neither.
func namesNothing(text string) bool {
	kind, err := render.Classify(text)
	return err == nil && kind == render.Image && !render.IsImageName(text) && !strings.ContainsAny(text, "/:")
}

// CatalogsAndPackage reads CATALOG... PACKAGE. The package may also come first, if that is no reference and the last
// argument is one.
func CatalogsAndPackage(args []string) (catalogs []string, pkg string) {
	last := len(args) - 1
	if namesNothing(args[0]) && !namesNothing(args[last]) {
		return args[1:], args[0]
	}
	return args[:last], args[last]
}
