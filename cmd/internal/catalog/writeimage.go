package catalog

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

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

// IndexFlags are the flags for the image of an edited index.
func (o *EditOptions) IndexFlags() []cli.Flag {
	const group = "content"
	return program.Flags([]cli.Flag{o.PlatformsFlag(group, "those of the edited index, else this machine's architecture")},
		o.Base.Flags(group),
		[]cli.Flag{o.outputFormatFlag()}, o.Form.Flags(group), o.Layers.Flags(group),
		[]cli.Flag{o.AllowEmptyFlag(group), o.CacheKeyFlag()})
}

// ImageEdit is an edit of a catalog from which an image is built.
type ImageEdit struct {
	// from is the index image, database file or catalog directory; empty for a new index.
	From string
	// inherit keeps the labels of the image from.
	inherit bool
	Edit    Prepare
}

// outputFormatFlag selects the form of the edited index.
func (o *EditOptions) outputFormatFlag() cli.Flag {
	return &cli.StringFlag{Name: "output-format", Category: "content", Destination: &o.OutputFormat,
		DefaultText: "that of the index; fbc for a new one",
		Usage:       "`FORMAT` of the index: file-based catalog or database (fbc|sqlite)"}
}

// OpenEdited opens the index and applies the edit. begun is the kind of a new index.
func (o *EditOptions) OpenEdited(ctx context.Context, p *option.Session, i ImageEdit, begun change.Kind) (
	_ *indeximage.Index, err error) {
	index, err := o.OpenIndex(ctx, p, o.bundles(), i.From, begun)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, index.Close())
		}
	}()
	kind, err := o.OutputKind(index.Source.Kind())
	if err != nil {
		return nil, err
	}
	wanted, err := i.Edit(ctx)
	if err != nil {
		return nil, err
	}
	if err := index.Apply(ctx, wanted, kind); err != nil {
		return nil, editError(p, err)
	}
	return index, nil
}

// MakeImage builds the image of the edited index and copies it to the destinations of --push and --to.
func (o *EditOptions) MakeImage(ctx context.Context, p *option.Session, i ImageEdit) (err error) {
	if err := o.CheckAccount(i.From); err != nil {
		return err
	}
	if _, err := o.OutputKind(""); err != nil {
		return err
	}
	spec, err := o.IndexSpec(ctx, p)
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
	out, within, err := o.Begin(ctx, p, i.From, &spec.Build)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(ctx)) }()
	if index, err = o.OpenEdited(within, p, i, change.Directory); err != nil {
		return out.Finish(ctx, nil, option.WithServerHint(err))
	}
	image, err := o.assemble(within, p, spec, i, index)
	r, err := out.Write(image, option.WithServerHint(err))
	if err != nil {
		return err
	}
	if err := o.ReportAccount(p, index.Name, index.Result); err != nil {
		return err
	}
	if err := out.Report(ctx, r); err != nil {
		return err
	}
	return LeftOut(index.Result)
}

// assemble assembles the image of the edited index.
func (o *EditOptions) assemble(ctx context.Context, p *option.Session, spec *indeximage.Spec, i ImageEdit, index *indeximage.Index) (
	*build.Image, error) {
	with, err := o.editedOptions(ctx, p, spec, i, index, spec.Build.Dir)
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // free the memory of the edit
	start := time.Now()
	image, err := index.Build(ctx, with, o.Database(p))
	image, err = buildcmd.CheckAssembled(p, &o.Catalogs, index.Name, start, image, LossHint(index.Name, err))
	if err == nil {
		o.Base.Report(p, image)
	}
	return image, err
}

// editedOptions returns the build options for the image of an edited index.
func (o *EditOptions) editedOptions(ctx context.Context, p *option.Session, spec *indeximage.Spec, i ImageEdit,
	index *indeximage.Index, dir string) (build.Options, error) {
	ro, err := o.bundles().Options(ctx, p)
	if err != nil {
		return build.Options{}, err
	}
	from := index.Name
	if o.Lock != "" {
		from = i.From // the same image by the name in the lock file
	}
	with, err := spec.Edited(ctx, index, from, i.inherit, dir, ro)
	if errors.Is(err, render.ErrPlatformsDiffer) {
		err = &cmdline.Error{Class: cmdline.ClassInput, Object: from, Err: err, Hint: "choose one with --platform"}
	}
	return with, option.WithServerHint(err)
}

// Database returns the options for writing a database.
func (o *EditOptions) Database(p *option.Session) sqlite.WriteOptions {
	return sqlite.WriteOptions{Lossy: o.Lossy, AnyImages: p.Opm}
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
