package main

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// editImageFlags are the flags for the image of an edited index.
func editImageFlags() []cli.Flag {
	const group = "content"
	return flags([]cli.Flag{platformsFlag(group, "those of the edited index, else this machine's architecture")},
		binaryImageFlags(group),
		[]cli.Flag{outputFormatFlag()}, formFlags(group), layerFlags(group), []cli.Flag{allowEmptyFlag(group)})
}

// imageEdit is an edit of a catalog from which an image is built.
type imageEdit struct {
	// from is the index image, database file or catalog directory; empty for a new index.
	from string
	// inherit keeps the labels of the image from.
	inherit bool
	// edit fetches what the edit needs and returns it.
	edit func() (change.Edit, error)
}

// outputFormatFlag selects the form of the edited index.
func outputFormatFlag() cli.Flag {
	return &cli.StringFlag{Name: "output-format", Category: "content",
		DefaultText: "that of the index; fbc for a new one",
		Usage:       "`FORMAT` of the index: file-based catalog or database (fbc|sqlite)"}
}

// outputKind reads [outputFormatFlag].
func outputKind(c *cli.Context, otherwise change.Kind) (change.Kind, error) {
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

// openIndex opens the index to edit. begun is the kind of a new index.
func (p *program) openIndex(c *cli.Context, from string, begun change.Kind) (*indeximage.Index, error) {
	if from == "" {
		kind, err := outputKind(c, begun)
		return indeximage.Empty(kind), err
	}
	kind, err := render.Classify(from)
	switch {
	case err != nil:
		return nil, err
	case kind == render.BundleDirectory:
		return nil, notCatalogDirectory(from)
	case kind == render.ManifestsDirectory:
		return nil, notEdited(from)
	}
	o := indeximage.Options{Change: change.Options{
		Jobs: c.Int("jobs"), Lossy: c.Bool("lossy"), KeepGoing: c.Bool("keep-going"), Warn: p.warnAt, Reuse: true,
		AnyImages: p.opm,
	}}
	if kind == render.Image {
		if o.Render, err = p.bundleOptions(c); err != nil {
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

// editIndex opens the index and applies the edit. begun is the kind of a new index.
func (p *program) editIndex(c *cli.Context, i imageEdit, begun change.Kind) (_ *indeximage.Index, err error) {
	index, err := p.openIndex(c, i.from, begun)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, index.Close())
		}
	}()
	kind, err := outputKind(c, index.Source.Kind())
	if err != nil {
		return nil, err
	}
	wanted, err := i.edit()
	if err != nil {
		return nil, err
	}
	if err := index.Apply(c.Context, wanted, kind); err != nil {
		return nil, p.editError(err)
	}
	return index, nil
}

// editImage builds the image of the edited index and copies it to the destinations of --push and --output.
func (p *program) editImage(c *cli.Context, i imageEdit) (err error) {
	if err := p.checkAccount(c, i.from); err != nil {
		return err
	}
	if _, err := outputKind(c, ""); err != nil {
		return err
	}
	spec, err := p.imageSpec(c)
	if err != nil {
		return err
	}
	var index *indeximage.Index
	// Layers may be written until the image has been copied.
	defer func() {
		if index != nil {
			err = errors.Join(err, index.Close())
		}
	}()
	assemble := func(common build.Options) (_ *build.Image, err error) {
		if index, err = p.editIndex(c, i, change.Directory); err != nil {
			return nil, err
		}
		o, err := p.editedOptions(c, spec, i, index, common.Dir)
		if err != nil {
			return nil, err
		}
		debug.FreeOSMemory() // free the memory of the edit
		image, err := p.assembleCatalog(c, index.Name, &o, func() (*build.Image, error) {
			image, err := index.Build(c.Context, o, p.databaseOptions(c))
			return image, lossHint(index.Name, err)
		})
		if err == nil {
			p.reportBase(c, image)
		}
		return image, withServerHint(err)
	}
	if err := p.makeImage(c, i.from, spec.Build, assemble,
		func() error { return p.reportAccount(c, index.Name, index.Result) }); err != nil {
		return err
	}
	return leftOut(index.Result)
}

// editedOptions returns the build options for the image of an edited index.
func (p *program) editedOptions(c *cli.Context, spec *indeximage.Spec, i imageEdit, index *indeximage.Index,
	dir string) (build.Options, error) {
	ro, err := p.bundleOptions(c)
	if err != nil {
		return build.Options{}, err
	}
	from := index.Name
	if c.String("lock") != "" {
		from = i.from // the same image by the name in the lock file
	}
	o, err := spec.Edited(c.Context, index, from, i.inherit, dir, ro)
	if errors.Is(err, render.ErrPlatformsDiffer) {
		err = &cmdline.Error{Class: cmdline.ClassInput, Object: from, Err: err, Hint: "choose one with --platform"}
	}
	return o, withServerHint(err)
}

// databaseOptions returns the options for writing a database.
func (p *program) databaseOptions(c *cli.Context) sqlite.WriteOptions {
	return sqlite.WriteOptions{Lossy: c.Bool("lossy"), AnyImages: p.opm}
}

// lossHint adds a hint to the error about data that a database cannot represent.
func lossHint(name string, err error) error {
	var loss *sqlite.LossError
	if !errors.As(err, &loss) {
		return err
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: name, Err: err,
		Hint: "--output-format fbc writes a file-based catalog, which stores everything; --lossy drops what a " +
			"database cannot store"}
}

// notAnIndex returns the error for an image that cannot be edited.
func (p *program) notAnIndex(ref string, err error) error {
	if errors.Is(err, render.ErrNotAllowed) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref,
			Err:  fmt.Errorf("%q is not an index image: %w", redact.Text(ref), err),
			Hint: "an index image has one of the labels " + build.ConfigsLabel + " and " + build.DatabaseLabel}
	}
	return p.opmMessage(err)
}
