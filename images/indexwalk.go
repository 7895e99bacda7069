package images

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// indexWalk visits the images of an index and of the indexes in it, in their order, or a single image.
type indexWalk struct {
	// img reads the source; each image gets a copy.
	img *Image
	// admission asks the signature policy about each index and image; nil asks nothing.
	admission *admission
	// image receives each image to run, with the text and type of its manifest and its entry in the index.
	image func(ctx context.Context, one *Image, text []byte, kind string, entry v1.Descriptor) error
	// index receives the outermost index, and other, unless nil, the entries that are no images to run.
	index func(v1.Index)
	other func(v1.Descriptor)

	entries int
}

// add visits an image, or all images of an index, whose manifest text one has read. above is the verdict about the
// index that it is in.
func (w *indexWalk) add(ctx context.Context, one *Image, text []byte, kind string, entry v1.Descriptor, above verdict,
	depth int) error {
	if depth > limit.MaxIndexDepth {
		return fmt.Errorf("%w: indexes in indexes, more than %d deep", fault.ErrLimit, limit.MaxIndexDepth)
	}
	kind, err := verify.ManifestKind(text, kind)
	if err != nil {
		return err
	}
	var instance *digest.Digest
	if depth > 0 {
		instance = &entry.Digest
	}
	admitted, err := w.admission.admit(ctx, above, instance, text, kind)
	if err != nil {
		return err
	}
	if !manifest.MIMETypeIsMultiImage(kind) {
		own := *one
		return w.image(ctx, &own, text, kind, entry)
	}
	var index v1.Index
	if err := json.Unmarshal(text, &index); err != nil {
		return fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
	}
	// The limit is for all indexes together, since they can be nested.
	if w.entries += len(index.Manifests); w.entries > limit.MaxIndexEntries {
		return fmt.Errorf("index: %w: %d entries (limit %d)", fault.ErrLimit, w.entries, limit.MaxIndexEntries)
	}
	if depth == 0 {
		w.index(index)
	}
	for _, entry := range index.Manifests {
		if err := verify.Digest(entry.Digest); err != nil {
			return fmt.Errorf("index: %w", err)
		}
		if !isImage(entry, len(index.Manifests)) {
			if w.other != nil {
				w.other(entry)
			}
			continue
		}
		one := *w.img
		text, kind, err := one.manifest(ctx, &entry.Digest)
		if err != nil {
			return err
		}
		if err := one.checkManifest(text, entry); err != nil {
			return err
		}
		if err := w.add(ctx, &one, text, kind, entry, admitted, depth+1); err != nil {
			return err
		}
	}
	return nil
}
