package catalog

import (
	"errors"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	buildcmd "github.com/operator-bindery/bindery/cmd/internal/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// EditImageFlags are the flags for the image of an edited index.
func EditImageFlags() []cli.Flag {
	const group = "content"
	return program.Flags([]cli.Flag{option.PlatformsFlag(group, "those of the edited index, else this machine's architecture")},
		option.BinaryImageFlags(group),
		[]cli.Flag{outputFormatFlag()}, option.FormFlags(group), option.LayerFlags(group), []cli.Flag{option.AllowEmptyFlag(group)})
}

// ImageEdit is an edit of a catalog from which an image is built.
type ImageEdit struct {
	// from is the index image, database file or catalog directory; empty for a new index.
	From string
	// inherit keeps the labels of the image from.
	inherit bool
	// edit fetches what the edit needs and returns it.
	Edit func() (change.Edit, error)
}

// outputFormatFlag selects the form of the edited index.
func outputFormatFlag() cli.Flag {
	return &cli.StringFlag{Name: "output-format", Category: "content",
		DefaultText: "that of the index; fbc for a new one",
		Usage:       "`FORMAT` of the index: file-based catalog or database (fbc|sqlite)"}
}

// EditIndex opens the index and applies the edit. begun is the kind of a new index.
func EditIndex(p *option.Session, c *cli.Context, i ImageEdit, begun change.Kind) (_ *indeximage.Index, err error) {
	index, err := p.OpenIndex(c, i.From, begun)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, index.Close())
		}
	}()
	kind, err := option.OutputKind(c, index.Source.Kind())
	if err != nil {
		return nil, err
	}
	wanted, err := i.Edit()
	if err != nil {
		return nil, err
	}
	if err := index.Apply(c.Context, wanted, kind); err != nil {
		return nil, editError(p, err)
	}
	return index, nil
}

// EditImage builds the image of the edited index and copies it to the destinations of --push and --to.
func EditImage(p *option.Session, c *cli.Context, i ImageEdit) (err error) {
	if err := CheckAccount(p, c, i.From); err != nil {
		return err
	}
	if _, err := option.OutputKind(c, ""); err != nil {
		return err
	}
	spec, err := p.ImageSpec(c)
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
		if index, err = EditIndex(p, c, i, change.Directory); err != nil {
			return nil, err
		}
		o, err := editedOptions(p, c, spec, i, index, common.Dir)
		if err != nil {
			return nil, err
		}
		debug.FreeOSMemory() // free the memory of the edit
		image, err := buildcmd.AssembleCatalog(p, func(n int) error { return p.CheckEmpty(c, index.Name, n) }, &o, func() (*build.Image, error) {
			image, err := index.Build(c.Context, o, DatabaseOptions(p, c))
			return image, LossHint(index.Name, err)
		})
		if err == nil {
			p.ReportBase(c, image)
		}
		return image, option.WithServerHint(err)
	}
	if err := p.MakeImage(c, i.From, spec.Build, assemble,
		func() error { return ReportAccount(p, c, index.Name, index.Result) }); err != nil {
		return err
	}
	return LeftOut(index.Result)
}

// editedOptions returns the build options for the image of an edited index.
func editedOptions(p *option.Session, c *cli.Context, spec *indeximage.Spec, i ImageEdit, index *indeximage.Index,
	dir string) (build.Options, error) {
	ro, err := p.BundleOptions(c)
	if err != nil {
		return build.Options{}, err
	}
	from := index.Name
	if c.String("lock") != "" {
		from = i.From // the same image by the name in the lock file
	}
	o, err := spec.Edited(c.Context, index, from, i.inherit, dir, ro)
	if errors.Is(err, render.ErrPlatformsDiffer) {
		err = &cmdline.Error{Class: cmdline.ClassInput, Object: from, Err: err, Hint: "choose one with --platform"}
	}
	return o, option.WithServerHint(err)
}

// DatabaseOptions returns the options for writing a database.
func DatabaseOptions(p *option.Session, c *cli.Context) sqlite.WriteOptions {
	return sqlite.WriteOptions{Lossy: c.Bool("lossy"), AnyImages: p.Opm}
}

// LossHint adds a hint to the error about data that a database cannot represent.
func LossHint(name string, err error) error {
	var loss *sqlite.LossError
	if !errors.As(err, &loss) {
		return err
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: name, Err: err,
		Hint: "--output-format fbc writes a file-based catalog, which stores everything; --lossy drops what a " +
			"database cannot store"}
}
