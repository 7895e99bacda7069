package bundle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/olmv1/manifests"
	"github.com/operator-bindery/bindery/render"
)

// bundleFiles calls use with the root of the bundle that a reference names: a directory, or of an image the directories
// that OLM v1 reads, whatever its labels say.
func bundleFiles(ctx context.Context, p *option.Session, from *option.Images, ref string, use func(fs.FS) error) (err error) {
	kind, err := render.Classify(ref)
	switch {
	case err != nil:
		return err
	case kind == render.Database:
		return &cmdline.Error{Class: cmdline.ClassInput, Object: ref,
			Err: fmt.Errorf("%q is a %s, not a bundle", ref, kind)}
	case kind != render.Image:
		root, err := bundlefs.OpenDir(ref)
		if err != nil {
			return err
		}
		defer root.Close()
		return use(root.FS())
	}
	if err := imageName(ref,
		"the argument is a bundle's directory, or an image as REGISTRY/REPOSITORY:TAG"); err != nil {
		return err
	}
	limits, err := from.Limits()
	if err != nil {
		return err
	}
	limits.Uncompressed = cmp.Or(limits.Uncompressed, render.MaxBundleImage)
	client, err := p.Client(ctx, from)
	if err != nil {
		return err
	}
	img, err := client.Image(ctx, ref, v1.Platform{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, img.Close()) }()
	if err := notBundle(ref, img.Config.Config.Labels); err != nil {
		return err
	}
	tree, err := img.Extract(ctx, []string{"manifests", "metadata"}, images.ExtractOptions{Limits: limits})
	if err != nil {
		return fmt.Errorf("failed to unpack image %q: %w", img.Name, err)
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	return use(tree)
}

// ReadBundle reads a bundle as OLM v1 does.
func ReadBundle(ctx context.Context, p *option.Session, from *option.Images, ref string) (b *manifests.Bundle, err error) {
	err = bundleFiles(ctx, p, from, ref, func(fsys fs.FS) (err error) {
		b, err = manifests.Read(fsys)
		return err
	})
	var read *manifests.ReadError
	if errors.As(err, &read) {
		return nil, &cmdline.Error{Class: cmdline.Classify(err), Object: ref, Hint: unreadableHint(ref, read),
			Err: fmt.Errorf("OLM v1 cannot read the bundle %q: %w", ref, Clip(err))}
	}
	return b, err
}

// unreadableHint says what else a reference that cannot be read as a bundle may be; it may be empty.
func unreadableHint(ref string, read *manifests.ReadError) string {
	if hint := hint.OfBundle(ref); hint != "" {
		return hint
	}
	if kind, err := render.Classify(ref); err == nil && kind == render.CatalogDirectory && errors.Is(read,
		fs.ErrNotExist) {
		return "a bundle has the directories manifests and metadata; \"bindery list bundles\" lists the bundles of a " +
			"catalog"
	}
	if strings.HasPrefix(read.Error(), "no ClusterServiceVersion") {
		return "only bundles of the format registry+v1 are rendered, which have a ClusterServiceVersion"
	}
	return ""
}

// maxCause is the most bytes of a cause that a message shows: some quote a whole manifest.
const maxCause = 600

// Clip shortens the message of an error.
func Clip(err error) error { return clipped{err} }

type clipped struct{ error }

func (c clipped) Error() string { return fault.Clip(c.error.Error(), maxCause) }

func (c clipped) Unwrap() error { return c.error }
