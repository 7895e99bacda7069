package render

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/sqlite"
)

// MaxBundleImage is the maximum total size of the layers of a bundle image in bytes, uncompressed, unless the caller
// sets another one ([images.Limits]).
const MaxBundleImage = 256 << 20

func bundleImage(ctx context.Context, img *images.Image, ref string, o *Options) (*declcfg.Bundle, error) {
	b, err := readBundleImage(ctx, img, o)
	if err != nil {
		return nil, err
	}
	return o.blob(b, o.imageName(img, ref))
}

func readBundleImage(ctx context.Context, img *images.Image, o *Options) (*bundle.Bundle, error) {
	b, tree, err := extractBundle(ctx, img, o)
	if err != nil {
		return nil, err
	}
	return b, tree.Close()
}

// extractBundle reads the bundle in an image and also returns its files. They must be closed.
func extractBundle(ctx context.Context, img *images.Image, o *Options) (*bundle.Bundle, *images.Tree, error) {
	labels := img.Config.Config.Labels
	limits := o.ImageLimits
	limits.Uncompressed = cmp.Or(limits.Uncompressed, MaxBundleImage)
	eo := images.ExtractOptions{Limits: limits, Temp: o.TempDir}
	read := o.bundleOptions()
	read.Labels = labels
	b, tree, err := extractPaths(ctx, img, bundle.Paths(labels), eo, read)
	if elsewhere(b, err) {
		// annotations.yaml may name directories that the labels do not. The whole image is then extracted; bundles are
		// small.
		if whole, files, werr := extractPaths(ctx, img, []string{"."}, eo, read); werr == nil {
			err = nil
			if tree != nil {
				err = tree.Close()
			}
			b, tree = whole, files
		}
	}
	o.warnOf(img.Name, b, err)
	if err != nil {
		if tree != nil {
			err = errors.Join(err, tree.Close())
		}
		return nil, nil, err
	}
	return b, tree, nil
}

func (o *Options) bundleOptions() bundle.ReadOptions {
	return bundle.ReadOptions{AnyProperties: o.Compat == sqlite.CompatOPM}
}

// extractPaths also returns a bundle that is the reason of the error.
func extractPaths(ctx context.Context, img *images.Image, paths []string, eo images.ExtractOptions,
	o bundle.ReadOptions) (*bundle.Bundle, *images.Tree, error) {
	tree, err := img.Extract(ctx, paths, eo)
	if err != nil {
		return nil, nil, fmt.Errorf("failed to unpack image %q: %w", img.Name, err)
	}
	b, err := bundle.Read(ctx, tree, o)
	if err != nil {
		return b, nil, errors.Join(err, tree.Close()) // the read error does not matter, the files are discarded
	}
	return b, tree, nil
}

// elsewhere reports whether a bundle, or the error of reading it, names directories that were not extracted.
func elsewhere(b *bundle.Bundle, err error) bool {
	var problems []bundle.Problem
	var unread *bundle.ReadError
	switch {
	case errors.As(err, &unread):
		problems = unread.Problems
	case err == nil:
		problems = b.Problems
	}
	return slices.ContainsFunc(problems, func(p bundle.Problem) bool {
		return p.Rule == bundle.RuleDirectory && p.Severity == bundle.SeverityError
	})
}

// warnOf reports what was ignored in a bundle, as far as the error of reading it does not have it.
func (o *Options) warnOf(name string, b *bundle.Bundle, err error) {
	if o.Warn == nil || b == nil {
		return
	}
	var unread *bundle.ReadError
	errors.As(err, &unread)
	for _, p := range b.Problems {
		if unread == nil || !unread.Has(p) {
			o.Warn(declcfg.Position{File: name + "/" + p.File, Line: p.Line, Column: p.Column}, p.Message)
		}
	}
}

func bundleDirectory(ctx context.Context, dir string, o *Options) (*declcfg.Bundle, error) {
	b, _, err := readBundleDirectory(ctx, dir, o)
	if err != nil {
		return nil, err
	}
	return o.blob(b, "")
}

// readBundleDirectory opens a directory and reads the bundle in it.
func readBundleDirectory(ctx context.Context, dir string, o *Options) (*bundle.Bundle, fs.FS, error) {
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		return nil, nil, err
	}
	b, err := bundle.Read(ctx, fsys, o.bundleOptions())
	o.warnOf(dir, b, err)
	var unread *bundle.ReadError
	if errors.As(err, &unread) {
		err = unread.Below(dir)
	}
	if err != nil {
		return nil, nil, err
	}
	return b, fsys, nil
}

// blob returns the olm.bundle blob. A bundle that is not from a registry gets the image of the template.
func (o *Options) blob(b *bundle.Bundle, image string) (*declcfg.Bundle, error) {
	f, err := o.named(FetchedBundle{Image: image, Bundle: b})
	if err != nil {
		return nil, err
	}
	return b.Blob(f.Image)
}
