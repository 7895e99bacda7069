package render

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
)

// bundleImage renders the bundle in an image.
func bundleImage(ctx context.Context, img *images.Image, ref string, o *Options) (*declcfg.Bundle, error) {
	labels := img.Config.Config.Labels
	limits := o.ImageLimits
	if limits.Uncompressed == 0 {
		limits.Uncompressed = 256 << 20
	}
	eo := images.ExtractOptions{Limits: limits, Temp: o.TempDir}
	b, err := extractBundle(ctx, img, bundle.Paths(labels), eo, o)
	var unread *bundle.ReadError
	if errors.As(err, &unread) {
		// annotations.yaml may name directories that the labels do not. The whole of a bundle is not much.
		if whole, werr := extractBundle(ctx, img, []string{"."}, eo, o); werr == nil {
			b, err = whole, nil
		}
	}
	if err != nil {
		return nil, err
	}
	name := ""
	switch {
	case o.ResolveDigests && img.InRegistry():
		name = img.Reference()
	case img.InRegistry():
		name = strings.TrimPrefix(ref, "docker://")
	}
	return o.blob(b, name)
}

func extractBundle(ctx context.Context, img *images.Image, paths []string, eo images.ExtractOptions, o *Options) (_ *bundle.Bundle, err error) {
	tree, err := img.Extract(ctx, paths, eo)
	if err != nil {
		return nil, fmt.Errorf("failed to unpack image %q: %w", img.Name, err)
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	return o.readBundle(ctx, tree, img.Name, img.Config.Config.Labels)
}

func (o *Options) readBundle(ctx context.Context, fsys fs.FS, name string, labels map[string]string) (*bundle.Bundle, error) {
	var problems []bundle.Problem
	b, err := bundle.Read(ctx, fsys, bundle.ReadOptions{Labels: labels, Warn: func(p bundle.Problem) { problems = append(problems, p) }})
	if err != nil {
		return nil, err // it may be read in another way, and the error tells what is wrong
	}
	for _, p := range problems {
		if o.Warn != nil {
			o.Warn(declcfg.Position{File: name + "/" + p.File, Line: p.Line}, p.Message)
		}
	}
	return b, nil
}

// bundleDirectory renders the bundle in a directory.
func bundleDirectory(ctx context.Context, dir string, o *Options) (*declcfg.Bundle, error) {
	fsys, err := declcfg.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	b, err := o.readBundle(ctx, fsys, dir, nil)
	if err != nil {
		return nil, err
	}
	return o.blob(b, "")
}

// blob is the olm.bundle blob. A bundle that comes from no registry gets the name that the template makes.
func (o *Options) blob(b *bundle.Bundle, image string) (*declcfg.Bundle, error) {
	if image == "" && o.ImageTemplate != nil && b.CSV != nil {
		var err error
		if image, err = o.ImageTemplate.Execute(b.Package, b.CSV.Name, b.CSV.Version); err != nil {
			return nil, err
		}
	}
	return b.Blob(image)
}
