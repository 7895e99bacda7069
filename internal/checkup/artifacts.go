package checkup

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
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
// (…rendered-catalog+json).
func WriteArtifacts(ctx context.Context, dir, ref string, o Options) (err error) {
	released := map[string]bool{}
	if o.Released != "" {
		if released, err = bundleImages(ctx, o.Released, o.Render); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	blobs, err := render.Reference(ctx, ref, o.Render)
	if err != nil {
		return err
	}
	related := map[string]bool{}
	err = writeFile(filepath.Join(dir, "catalog.json"), func(w io.Writer) error {
		enc := declcfg.NewEncoder(w, declcfg.FormatJSON)
		for b, err := range blobs {
			if err != nil {
				return err
			}
			if b, ok := b.(*declcfg.Bundle); ok && !released[b.Image] {
				for _, r := range b.RelatedImages {
					if r.Image != "" {
						related[r.Image] = true
					}
				}
			}
			if err := enc.Encode(b); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(dir, "related-images.json"), func(w io.Writer) error {
		list := slices.Sorted(maps.Keys(related))
		if list == nil {
			list = []string{}
		}
		return json.NewEncoder(w).Encode(list)
	})
}

// bundleImages returns the images of the bundles of a catalog.
func bundleImages(ctx context.Context, ref string, o render.Options) (map[string]bool, error) {
	o.Skeleton = true
	blobs, err := render.Reference(ctx, ref, o)
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

func writeFile(name string, write func(io.Writer) error) (err error) {
	f, err := atomicfs.NewFile(name, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}
