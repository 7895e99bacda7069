package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
)

// Index is an index image that was opened for its catalog: a database or the files of a file-based catalog. Close it
// after use.
type Index struct {
	// Kind is DatabaseImage or CatalogImage.
	Kind Kind
	// Database is a private copy of the database, a file that is there until Close.
	Database string
	// Configs is the catalog.
	Configs fs.FS
	// Name is what the image can be had by again, and Platform the one that its configuration names.
	Name     string
	Platform v1.Platform

	done   func() error
	client func() error // closes it
}

// Close removes the copy.
func (i *Index) Close() error { return errors.Join(i.done(), i.client()) }

// OpenIndex reads the database or the catalog of an index image, in one form for both. Of o count Images, ImageLimits,
// Account, Opened and TempDir. Errors are a [*ReferenceError].
func OpenIndex(ctx context.Context, ref string, o Options) (_ *Index, err error) {
	defer func() {
		if err != nil {
			err = &ReferenceError{ref, err}
		}
	}()
	o.Allow = []Kind{DatabaseImage, CatalogImage}
	prepared, done, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = closing(err, done)
		}
	}()
	img, kind, dir, err := openImage(ctx, ref, prepared)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	prepared.opened(OpenedImage{Reference: ref, Kind: kind, Digest: img.Reference()})
	index := &Index{client: done, Kind: kind, Name: img.Reference(), Platform: img.Config.Platform}
	if kind == DatabaseImage {
		if index.Database, index.done, err = copyDatabase(ctx, img, dir, prepared); err != nil {
			return nil, err
		}
		return index, nil
	}
	tree, configs, err := extract(ctx, img, prepared, dir)
	if err != nil {
		return nil, err
	}
	index.Configs, index.done = configs, tree.Close
	return index, nil
}

// copyDatabase copies the database out of an image, into a private directory that done removes.
func copyDatabase(ctx context.Context, img *images.Image, name string, o *Options) (path string, done func() error, err error) {
	work, err := images.NewWorkspace(ctx, nil, o.TempDir)
	if err != nil {
		return "", nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, work.Close())
		}
	}()
	path = filepath.Join(work.Dir(), "index.db")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", nil, err
	}
	limits := o.ImageLimits
	limits.File = cmp.Or(limits.File, maxDatabase)
	_, err = img.CopyFile(ctx, name, f, images.ExtractOptions{Limits: limits, Temp: o.TempDir})
	if err = errors.Join(err, f.Close()); err != nil {
		return "", nil, fmt.Errorf("failed to unpack image %q: %w", img.Name, err)
	}
	return path, work.Close, nil
}
