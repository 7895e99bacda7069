package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/guard"
)

// FetchedBundle is a bundle that was read from an image or a directory.
type FetchedBundle struct {
	// Reference is the reference that was passed in. Image is the bundle's image in a catalog: the reference or, with
	// [Options.ResolveDigests], REPOSITORY@DIGEST. For a bundle that is not from a registry it is the image of
	// [Options.ImageTemplate], or empty.
	Reference, Image string
	Bundle           *bundle.Bundle
	// PackageManifests says that the bundle comes from a directory with package manifests, whose bundles have no images.
	PackageManifests bool
}

// Bundles reads bundles from images of every transport and from directories concurrently. as is called concurrently for
// every bundle that was read and returns the value to keep; its errors are reported with the reference. The values are
// in the order of the references, those of a directory with package manifests by package and name. The error joins a
// [ReferenceError] for every reference that could not be read; the values of the others are returned too. With
// [Options.KeepGoing] all references are tried; otherwise no more are started after twenty failures. Options about
// blobs (Level, Reuse) are ignored.
func Bundles[T any](ctx context.Context, refs []string, o Options,
	as func(FetchedBundle) (T, error)) (_ []T, err error) {
	prepared, done, err := o.prepare()
	if err != nil {
		return nil, err
	}
	defer func() { err = closing(err, done) }()
	most := maxFailures
	if o.KeepGoing {
		most = len(refs)
	}
	kept := make([][]T, len(refs))
	err = fetchEach(ctx, refs, o.fetches(), most, func(i int) error {
		return eachBundle(ctx, refs[i], prepared, func(b FetchedBundle) error {
			v, err := as(b)
			if err == nil {
				kept[i] = append(kept[i], v)
			}
			return err
		})
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	out := make([]T, 0, len(refs))
	for _, of := range kept {
		out = append(out, of...)
	}
	return out, err
}

// fetches returns how many images are fetched concurrently.
func (o *Options) fetches() int {
	switch {
	case o.Fetches > 0:
		return o.Fetches
	case o.Jobs > 0:
		return o.Jobs
	}
	return defaultFetches
}

// fetchEach calls fetch concurrently for every reference until there are more than most failures. The error joins all
// failures.
func fetchEach(ctx context.Context, refs []string, bound, most int, fetch func(i int) error) error {
	errs := guard.TryEach(ctx, bound, most, refs, func(_ context.Context, i int, _ string) error { return fetch(i) })
	for i, err := range errs {
		if err != nil {
			errs[i] = &ReferenceError{refs[i], err}
		}
	}
	return errors.Join(errs...)
}

// eachBundle calls use for the bundle of a reference, or for each bundle of a directory with package manifests.
func eachBundle(ctx context.Context, ref string, o *Options, use func(FetchedBundle) error) error {
	if kind, err := check(ref, o); err != nil || kind != ManifestsDirectory {
		b, err := fetchBundle(ctx, ref, o, nil)
		if err != nil {
			return err
		}
		return use(b)
	}
	return manifestBundles(ctx, ref, o, use)
}

// BundleFiles reads one bundle as [Bundles] does. It calls use with the bundle and the file system of its root, which
// is valid only during the call.
func (o Options) BundleFiles(ctx context.Context, ref string, use func(FetchedBundle, fs.FS) error) error {
	prepared, done, err := o.prepare()
	if err == nil {
		_, err = fetchBundle(ctx, ref, prepared, use)
		err = closing(err, done)
	}
	if err != nil {
		return &ReferenceError{ref, err}
	}
	return nil
}

// fetchBundle reads one bundle. use, unless nil, is called with its files.
func fetchBundle(ctx context.Context, ref string, o *Options,
	use func(FetchedBundle, fs.FS) error) (_ FetchedBundle, err error) {
	kind, err := check(ref, o)
	if err != nil {
		return FetchedBundle{}, err
	}
	switch kind {
	case BundleDirectory:
		b, files, err := readBundleDirectory(ctx, ref, o)
		if err != nil {
			return FetchedBundle{}, err
		}
		f, err := o.named(FetchedBundle{Reference: ref, Bundle: b})
		if err == nil && use != nil {
			err = use(f, files)
		}
		return f, err
	case Image:
	default:
		return FetchedBundle{}, notBundle(kind)
	}
	img, kind, _, err := openImage(ctx, ref, o)
	if err != nil {
		return FetchedBundle{}, err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	o.opened(OpenedImage{Reference: ref, Kind: kind, Digest: img.Reference()})
	if kind != BundleImage {
		return FetchedBundle{}, notBundle(kind)
	}
	b, tree, err := extractBundle(ctx, img, o)
	if err != nil {
		return FetchedBundle{}, err
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	f, err := o.named(FetchedBundle{Reference: ref, Image: o.imageName(img, ref), Bundle: b})
	if err == nil && use != nil {
		err = use(f, tree)
	}
	return f, err
}

func notBundle(kind Kind) error {
	return fmt.Errorf("it is a %s, %w: a bundle is an image, or a directory with manifests and metadata", kind,
		ErrNotBundle)
}

// imageName returns the image of a bundle in a catalog; empty if the image is in no registry.
func (o *Options) imageName(img *images.Image, ref string) string {
	switch {
	case o.ResolveDigests && img.InRegistry():
		return img.Reference()
	case img.InRegistry():
		return strings.TrimPrefix(ref, "docker://")
	}
	return ""
}

// named sets the image of a bundle that is not from a registry by the template.
func (o *Options) named(b FetchedBundle) (FetchedBundle, error) {
	if b.Image != "" || o.ImageTemplate == nil || b.Bundle.CSV == nil {
		return b, nil
	}
	var err error
	b.Image, err = o.ImageTemplate.Execute(b.Bundle.Package, b.Bundle.CSV.Name, b.Bundle.CSV.Version)
	return b, err
}
