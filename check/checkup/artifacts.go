package checkup

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/render"
)

// WriteArtifacts writes the files that Konflux attaches to a catalog image into a directory: related-images.json, a
// list of the related images of the bundles that the released catalog does not have
// (application/vnd.konflux-ci.attached-artifact.related-images+json), and catalog.json, the rendered catalog
// (…rendered-catalog+json). Both are written once the whole catalog has been read.
func WriteArtifacts(ctx context.Context, dir, ref string, o Options) (err error) {
	released := map[string]bool{}
	if o.Released != "" {
		if released, err = bundleImages(ctx, o.Released, o.Render); err != nil {
			return err
		}
	}
	blobs, err := o.Render.Render(ctx, ref)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	catalog, err := atomicfs.NewFile(filepath.Join(dir, "catalog.json"), 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, catalog.Abort()) }()
	list, err := atomicfs.NewFile(filepath.Join(dir, "related-images.json"), 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.Abort()) }()
	related := []string{}
	enc := declcfg.FormatJSON.NewEncoder(catalog)
	for b, err := range blobs {
		if err != nil {
			return err
		}
		if b, ok := b.(*declcfg.Bundle); ok && !released[b.Image] {
			for _, r := range b.RelatedImages {
				if r.Image != "" {
					related = append(related, r.Image)
				}
			}
		}
		if err := enc.Encode(b); err != nil {
			return err
		}
	}
	slices.Sort(related)
	if err := json.NewEncoder(list).Encode(slices.Compact(related)); err != nil {
		return err
	}
	return errors.Join(catalog.Commit(), list.Commit())
}

// bundleImages returns the images of the bundles of a catalog.
func bundleImages(ctx context.Context, ref string, o render.Options) (map[string]bool, error) {
	o.Skeleton = true
	blobs, err := o.Render(ctx, ref)
	if err != nil {
		return nil, err
	}
	out := map[string]bool{}
	for b, err := range blobs {
		if err != nil {
			return nil, err
		}
		if b, ok := b.(*declcfg.Bundle); ok {
			out[b.Image] = true
		}
	}
	return out, nil
}
