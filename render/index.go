package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images"
)

// Index is an opened index image: its database or the files of its catalog. Close it after use.
type Index struct {
	// Kind is DatabaseImage or CatalogImage.
	Kind Kind
	// Database is the path of a private copy of the database, which exists until Close.
	Database string
	// Configs is the catalog.
	Configs fs.FS
	// Name is the image's name with its digest, Platform the one in its configuration.
	Name     string
	Platform v1.Platform
	// Digest is that of the index or manifest which the name refers to.
	Digest digest.Digest

	done   func() error
	client func() error // closes the client
}

// Close removes the copy.
func (i *Index) Close() error { return errors.Join(i.done(), i.client()) }

// OpenIndex reads the database or the catalog of an index image. The options Images, ImageLimits, Account, Opened and
// TempDir are used. Errors are a [*ReferenceError].
func (o Options) OpenIndex(ctx context.Context, ref string) (_ *Index, err error) {
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
	index := &Index{client: done, Kind: kind, Name: img.Reference(), Platform: img.Config.Platform, Digest: img.Top}
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

// copyDatabase copies the database of an image to a private directory, which done removes.
func copyDatabase(ctx context.Context, img *images.Image, name string,
	o *Options) (path string, done func() error, err error) {
	work, err := images.NewWorkspace(ctx, o.TempDir)
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
