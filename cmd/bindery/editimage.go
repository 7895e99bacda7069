package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/change"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// imageEdit is an edit of what a reference holds, of which an image is made.
type imageEdit struct {
	// from is the index image, a database file or a catalog directory; empty for nothing, to begin a new index.
	from string
	// takeOver keeps the labels of the image that from is.
	takeOver bool
	// edit fetches what the edit needs.
	edit func() (change.Edit, error)
}

// editedIndex is a catalog after an edit, on its way out.
type editedIndex struct {
	kind    change.Kind // what it becomes
	source  *change.Source
	opened  *render.Index // nil if it came from no image
	name    string        // what it came from, for the account
	blobs   iter.Seq2[declcfg.Blob, error]
	result  *change.Result
	edit    change.Edit
	configs fs.FS        // the files that it came from; nil for a database
	files   []build.File // of configs
}

// Close gives back what the catalog came from.
func (e *editedIndex) Close() error {
	var err error
	if e.source != nil {
		err = e.source.Close()
	}
	if e.opened != nil {
		err = errors.Join(err, e.opened.Close())
	}
	return err
}

// outputFormatFlag chooses what an edited index becomes.
func outputFormatFlag() cli.Flag {
	return &cli.StringFlag{Name: "output-format", Category: "what", DefaultText: "that of the index; fbc for a new one",
		Usage: "`FORMAT` of the index: file-based catalog or database (fbc|sqlite)"}
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

// editIndex opens the index and applies the edit. begun is what a new index is.
func (p *program) editIndex(c *cli.Context, i imageEdit, begun change.Kind) (_ *editedIndex, err error) {
	e := &editedIndex{name: i.from}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if err := p.openEdited(c, i.from, e, begun); err != nil {
		return nil, err
	}
	if e.kind, err = outputKind(c, e.source.Kind()); err != nil {
		return nil, err
	}
	wanted, err := i.edit()
	if err != nil {
		return nil, err
	}
	e.edit = wanted
	apply := wanted.Apply
	wanted.Apply = func(ctx context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		if e.configs != nil {
			if e.files, err = build.FilesOf(s.Catalog); err != nil {
				return nil, nil, err
			}
		}
		// Bundles are added in the form that the result can hold.
		s.Kind = e.kind
		return apply(ctx, s)
	}
	if e.blobs, e.result, err = e.source.Apply(c.Context, wanted); err != nil {
		return nil, p.editError(err)
	}
	return e, nil
}

// openEdited opens what is edited.
func (p *program) openEdited(c *cli.Context, from string, e *editedIndex, begun change.Kind) (err error) {
	if from == "" {
		kind, err := outputKind(c, begun)
		e.source, e.name = change.Empty(kind), "new index"
		return err
	}
	o := change.Options{Jobs: c.Int("jobs"), Lossy: c.Bool("lossy"), KeepGoing: c.Bool("keep-going"), Warn: p.warnAt, Reuse: true, AnyImages: p.opm}
	kind, err := render.Classify(from)
	if err != nil {
		return err
	}
	database := from
	switch kind {
	case render.BundleDirectory:
		return notCatalogDirectory(from)
	case render.ManifestsDirectory:
		return notEdited(from)
	case render.CatalogDirectory:
		if e.configs, err = declcfg.OpenDir(from); err != nil {
			return err
		}
		o.Dir = from
	case render.Image:
		ro, err := p.bundleOptions(c)
		if err != nil {
			return err
		}
		if e.opened, err = render.OpenIndex(c.Context, from, ro); err != nil {
			return p.notAnIndex(from, err)
		}
		e.name, e.configs, database = e.opened.Name, e.opened.Configs, e.opened.Database
	}
	if e.configs != nil {
		e.source, err = change.FromFS(c.Context, e.configs, o)
	} else {
		e.source, err = change.FromDatabase(c.Context, database, o)
	}
	return err
}

// editImage makes an image of the edited index and carries it where --push and --output say.
func (p *program) editImage(c *cli.Context, i imageEdit) (err error) {
	if err := p.checkAccount(c, i.from); err != nil {
		return err
	}
	if _, err := outputKind(c, ""); err != nil {
		return err
	}
	o, err := p.catalogOptions(c)
	if err != nil {
		return err
	}
	var edited *editedIndex
	// Until the image has been copied: layers may have to be made of it then.
	defer func() {
		if edited != nil {
			err = errors.Join(err, edited.Close())
		}
	}()
	image := func(o build.Options) (_ *build.Image, err error) {
		if edited != nil {
			if err := edited.Close(); err != nil {
				return nil, err
			}
		}
		if edited, err = p.editIndex(c, i, change.Directory); err != nil {
			return nil, err
		}
		if err := p.imageOf(c, i, edited, &o); err != nil {
			return nil, err
		}
		debug.FreeOSMemory() // what the edit took
		start := time.Now()
		made, err := p.assemble(&o, func() (*build.Image, error) { return p.assembleIndex(c, edited, o) })
		if err != nil {
			return nil, err
		}
		if err := p.checkEmpty(c, edited.name, made.Totals.Packages); err != nil {
			return nil, errors.Join(err, made.Close())
		}
		p.tellBase(c, made)
		p.log.Info(fmt.Sprintf("assembled %s in %s, %s, in %s", count(made.Totals.Packages, "package"), layerCount(made),
			cmdline.FormatSize(made.Totals.Size), time.Since(start).Round(time.Millisecond)))
		return made, nil
	}
	if err := p.makeImage(c, i.from, o, image, func() error { return p.tellAccount(c, edited.name, edited.result) }); err != nil {
		return err
	}
	return leftOut(edited.result)
}

// assembleIndex makes the image.
func (p *program) assembleIndex(c *cli.Context, e *editedIndex, o build.Options) (*build.Image, error) {
	if e.kind == change.Directory {
		return build.Catalog(c.Context, e.catalogInput(), o)
	}
	// In a directory of its own: the other one is locked by who made it, and databases are locked by their directories.
	dir := filepath.Join(o.Dir, "database")
	// An earlier attempt may have left it.
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return nil, err
	}
	const name = "index.db"
	packages, err := p.writeIndexDatabase(c, e, filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	image, err := build.Index(c.Context, build.IndexInput{FS: os.DirFS(dir), Name: name, Packages: packages}, o)
	if err != nil {
		return nil, err
	}
	if image.NeedsInput() {
		return image, nil
	}
	// It is in its layer now.
	if err := os.RemoveAll(dir); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	return image, nil
}

// catalogInput is the edited catalog as the content of an image: the files of packages that did not change as they are, if
// there are files.
func (e *editedIndex) catalogInput() build.CatalogInput {
	if e.configs == nil {
		return build.CatalogInput{Blobs: e.blobs}
	}
	if len(e.result.Changed) == 0 {
		return build.CatalogInput{FS: e.configs, Files: e.files}
	}
	return build.CatalogInput{FS: e.configs, Files: e.files, Blobs: e.result.ChangedBlobs, Changed: e.result.Changed}
}

// writeIndexDatabase writes the edited catalog into a database and returns the names of the packages in it.
func (p *program) writeIndexDatabase(c *cli.Context, e *editedIndex, path string) ([]string, error) {
	var packages []string
	blobs := func(yield func(declcfg.Blob, error) bool) {
		for b, err := range e.blobs {
			if err == nil && b.BlobSchema() == declcfg.SchemaPackage {
				packages = append(packages, b.BlobName())
			}
			if !yield(b, err) {
				return
			}
		}
	}
	written, err := sqlite.Create(c.Context, path, blobs, sqlite.WriteOptions{
		Lossy: c.Bool("lossy"), Origins: e.result.Origins, HeadManifests: e.edit.HeadManifests, AnyImages: p.opm,
	})
	var loss *sqlite.LossError
	if errors.As(err, &loss) {
		return nil, &cmdline.Error{Class: cmdline.ClassInput, Object: e.name, Err: err,
			Hint: "--output-format fbc makes a file-based catalog, which holds everything; --lossy leaves out what a database cannot hold"}
	}
	if err != nil {
		return nil, err
	}
	e.result.Written = written
	return packages, nil
}

// notAnIndex is the error about an image that cannot be edited.
func (p *program) notAnIndex(ref string, err error) error {
	if errors.Is(err, render.ErrNotAllowed) {
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: fmt.Errorf("%q is not an index image: %w", images.WithoutCredentials(ref), err),
			Hint: "an index image has one of the labels " + build.ConfigsLabel + " and " + build.DatabaseLabel}
	}
	return p.opmMessage(err)
}
