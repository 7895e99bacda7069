package indeximage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// Index is a catalog that is edited before it is written to an image or a file. It is not safe for concurrent use.
// Close it after the image has been copied: until then layers may be written.
type Index struct {
	// Name is the catalog's reference, with the digest if it is an image.
	Name string
	// Image is the source image; nil for a catalog on disk and for a new one.
	Image *render.Index
	// Source is the catalog before the edit.
	Source *change.Source
	// Kind is the form of the result. Blobs are the catalog after the edit and Result describes the edit. All are set
	// by Apply.
	Kind   change.Kind
	Blobs  iter.Seq2[declcfg.Blob, error]
	Result *change.Result

	edit    change.Edit
	configs fs.FS        // the files of the catalog; nil for a database
	files   []build.File // the files of configs
}

// Options configure [Open].
type Options struct {
	Change change.Options
	Render render.Options
}

// Empty returns an empty index.
func Empty(kind change.Kind) *Index { return &Index{Name: "new index", Source: change.Empty(kind)} }

// Open opens the index image, database or catalog directory that a reference names. An error about an image is a
// *[render.ReferenceError], which is [render.ErrNotAllowed] if the image is not an index.
func Open(ctx context.Context, from string, o Options) (_ *Index, err error) {
	x := &Index{Name: from}
	defer func() {
		if err != nil {
			err = errors.Join(err, x.Close())
		}
	}()
	kind, err := render.Classify(from)
	if err != nil {
		return nil, err
	}
	database := from
	switch kind {
	case render.BundleDirectory, render.ManifestsDirectory:
		return nil, fmt.Errorf("%q is a %s, not a catalog", from, kind)
	case render.CatalogDirectory:
		if x.configs, err = declcfg.OpenDir(from); err != nil {
			return nil, err
		}
		o.Change.Dir = from
	case render.Image:
		if x.Image, err = o.Render.OpenIndex(ctx, from); err != nil {
			return nil, err
		}
		x.Name, x.configs, database = x.Image.Name, x.Image.Configs, x.Image.Database
	}
	if x.configs != nil {
		x.Source, err = change.FromFS(ctx, x.configs, o.Change)
	} else {
		x.Source, err = change.FromDatabase(ctx, database, o.Change)
	}
	return x, err
}

// Close closes the source.
func (x *Index) Close() error {
	var err error
	if x.Source != nil {
		err = x.Source.Close()
	}
	if x.Image != nil {
		err = errors.Join(err, x.Image.Close())
	}
	return err
}

// Apply applies an edit. The result has the given kind, or the kind of the source if that is empty.
func (x *Index) Apply(ctx context.Context, e change.Edit, to change.Kind) (err error) {
	if x.Kind = to; to == "" {
		x.Kind = x.Source.Kind()
	}
	x.edit = e
	e.Apply = func(ctx context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
		if x.configs != nil {
			var err error
			if x.files, err = build.FilesOf(s.Catalog); err != nil {
				return nil, nil, err
			}
		}
		// Bundles are added in the form that the result can represent.
		s.Kind = x.Kind
		return x.edit.Apply(ctx, s)
	}
	x.Blobs, x.Result, err = x.Source.Apply(ctx, e)
	return err
}

// Catalog returns the edited catalog as the content of an image. If the source has files, those of unchanged packages
// are used unchanged.
func (x *Index) Catalog() build.CatalogInput {
	switch {
	case x.configs == nil:
		return build.CatalogInput{Blobs: x.Blobs}
	case len(x.Result.Changed) == 0:
		return build.CatalogInput{FS: x.configs, Files: x.files}
	}
	return build.CatalogInput{FS: x.configs, Files: x.files, Blobs: x.Result.ChangedBlobs, Changed: x.Result.Changed}
}

// WriteDatabase writes the edited catalog to a database and returns the names of its packages. The edit determines the
// origins and manifests in the options.
func (x *Index) WriteDatabase(ctx context.Context, path string, o sqlite.WriteOptions) ([]string, error) {
	var packages []string
	blobs := func(yield func(declcfg.Blob, error) bool) {
		for b, err := range x.Blobs {
			if err == nil && b.BlobSchema() == declcfg.SchemaPackage {
				packages = append(packages, b.BlobName())
			}
			if !yield(b, err) {
				return
			}
		}
	}
	o.Origins, o.HeadManifests = x.Result.Origins, x.edit.HeadManifests
	written, err := sqlite.Create(ctx, path, blobs, o)
	if err != nil {
		return nil, err
	}
	x.Result.Written = written
	return packages, nil
}

// Build builds the image of the edited catalog, or of the database written with w.
func (x *Index) Build(ctx context.Context, o build.Options, w sqlite.WriteOptions) (*build.Image, error) {
	if x.Kind == change.Directory {
		return build.Catalog(ctx, x.Catalog(), o)
	}
	// The database goes to a subdirectory: writing it locks its directory, and o.Dir is locked already.
	dir := filepath.Join(o.Dir, "database")
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	const name = "index.db"
	packages, err := x.WriteDatabase(ctx, filepath.Join(dir, name), w)
	if err != nil {
		return nil, err
	}
	image, err := build.Index(ctx, build.IndexInput{FS: os.DirFS(dir), Name: name, Packages: packages}, o)
	if err != nil || image.NeedsInput() {
		return image, err
	}
	// The layer has a copy.
	if err := os.RemoveAll(dir); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	return image, nil
}
