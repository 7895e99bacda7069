package compose

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
)

// Options configure how references are opened and read.
type Options struct {
	// Render configures reading references that are not stacked. Its client opens all of them. With a Level other than
	// none all of them are read.
	Render render.Options
	// Platforms are those of the new image. A reference must have the same catalog for each of them.
	Platforms []v1.Platform
	// Cache and Program are those of [build.ReadOptions].
	Cache   *build.Cache
	Program string
	// Locked means that the client's lock file has the digests of the names.
	Locked bool
}

// opens is how many references are opened concurrently: each takes two or three small requests.
const opens = 8

// readMemory is how much of one image is held in memory while it is read; the rest goes to a temporary file.
const readMemory = 4 << 20

// Images are the opened images of references. Close it after the composed image has been copied.
type Images struct {
	References []build.Reference
	opened     []*images.Image
}

// Close closes the images.
func (i *Images) Close() error {
	var errs []error
	for _, img := range i.opened {
		if img != nil {
			errs = append(errs, img.Close())
		}
	}
	i.opened = nil
	return errors.Join(errs...)
}

// Open opens the images of references: it reads only their manifests and configurations. The problems of all are
// reported, each as a [*build.ReferenceError].
func Open(ctx context.Context, refs []Reference, o Options) (_ *Images, err error) {
	all := &Images{References: make([]build.Reference, len(refs)), opened: make([]*images.Image, len(refs))}
	defer func() {
		if err != nil {
			err = errors.Join(err, all.Close())
		}
	}()
	errs := guard.TryEach(ctx, opens, 0, refs, func(ctx context.Context, i int, r Reference) (err error) {
		if all.opened[i], all.References[i], err = open(ctx, r, &o); err != nil {
			return &build.ReferenceError{Name: r.Name, Image: r.Image, Err: err}
		}
		return nil
	})
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return all, errors.Join(errs...)
}

// open opens one image and determines whether it can be stacked.
func open(ctx context.Context, r Reference, o *Options) (_ *images.Image, ref build.Reference, err error) {
	img, err := o.Render.Images.Image(ctx, r.Image, v1.Platform{})
	if err != nil {
		return nil, ref, err
	}
	ref = build.Reference{Name: r.Name, Image: redact.Text(img.Reference())}
	kind, dir, err := render.KindOfImage(img.Config.Config.Labels)
	if err == nil && kind != render.CatalogImage && kind != render.DatabaseImage {
		err = fmt.Errorf("it is a %s, not a catalog: %w", kind, render.ErrNotAllowed)
	}
	if err != nil {
		return img, ref, err
	}
	if o.Render.Level != edit.LevelNone && o.Render.Level != "" {
		ref.NoStack = fmt.Errorf("its bundles must be migrated to %s", o.Render.Level)
	} else {
		ref.Stack, ref.NoStack = build.ReadStack(img)
	}
	name := r.Image
	if !o.Locked {
		name = img.Reference() // the tag may move meanwhile
	}
	if err := sameOnAll(ctx, img, name, ref.Stack, o); err != nil {
		return img, ref, err
	}
	ref.Read = func(ctx context.Context) (build.CatalogInput, func() error, error) {
		return read(ctx, img, name, kind, dir, o)
	}
	return img, ref, nil
}

// sameOnAll refuses an image whose catalog differs between the platforms, as only one of them is used.
func sameOnAll(ctx context.Context, img *images.Image, name string, stack *build.Stack, o *Options) error {
	if len(o.Platforms) < 2 || img.Top == img.Digest {
		return nil
	}
	d, err := o.Render.Images.Describe(ctx, name)
	if err != nil {
		return err
	}
	if stack == nil {
		return render.SameOnAll(ctx, d, o.Platforms, o.Render)
	}
	for _, v := range d.Variants {
		if !platform.Matches(v.Platform, o.Platforms...) {
			continue
		}
		// The package layers are on top and must be equal; the layers below depend on the platform.
		ids, last := v.Config.RootFS.DiffIDs, img.Config.RootFS.DiffIDs
		n := len(stack.Layers)
		if len(ids) < n || !slices.Equal(ids[len(ids)-n:], last[len(last)-n:]) {
			return fmt.Errorf("%w: %s and another one", render.ErrPlatformsDiffer, platform.Name(v.Platform))
		}
	}
	return nil
}

// read reads and validates the catalog of an image. release closes it.
func read(ctx context.Context, img *images.Image, name string, kind render.Kind, dir string,
	o *Options) (_ build.CatalogInput, release func() error, err error) {
	ro := o.Render
	ro.ImageLimits.Memory = readMemory
	if kind == render.DatabaseImage {
		// A database is validated before its first blob.
		blobs, err := ro.Render(ctx, name)
		return build.CatalogInput{Blobs: blobs}, nil, err
	}
	tree, err := img.Extract(ctx, []string{dir}, images.ExtractOptions{Limits: ro.ImageLimits, Temp: ro.TempDir})
	if err != nil {
		return build.CatalogInput{}, nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, tree.Close())
		}
	}()
	configs, err := fs.Sub(tree, dir)
	if err != nil {
		return build.CatalogInput{}, nil, err
	}
	files, err := build.ReadCatalog(ctx, configs,
		build.ReadOptions{Jobs: ro.Jobs, Warn: ro.Warn, Cache: o.Cache, Program: o.Program})
	if err != nil {
		return build.CatalogInput{}, nil, err
	}
	if ro.Level != edit.LevelNone && ro.Level != "" {
		blobs, err := ro.Render(ctx, name)
		return build.CatalogInput{Blobs: blobs}, tree.Close, err
	}
	return build.CatalogInput{FS: configs, Files: files}, tree.Close, nil
}
