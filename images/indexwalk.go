package images

import (
	"context"
	"encoding/json"
	"fmt"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// indexWalk visits the images of an index and of the indexes in it, in their order, or a single image.
type indexWalk struct {
	src *Source
	// image receives each image to run, with the text of its manifest and its entry in the index.
	image func(ctx context.Context, one *Image, text []byte, entry v1.Descriptor) error
	// index receives the outermost index, and other, unless nil, the entries that are no images to run.
	index func(v1.Index)
	other func(v1.Descriptor)

	entries int
}

// descriptor is that of the image as others know it.
func (s *Source) descriptor() v1.Descriptor {
	return v1.Descriptor{MediaType: s.Top.MediaType, Digest: s.Digest, Size: s.Top.Size}
}

// add visits an image, or all images of an index, whose manifest has been read and judged. The media type of the entry is
// that of the manifest.
func (w *indexWalk) add(ctx context.Context, text []byte, entry v1.Descriptor, admitted verdict, depth int) error {
	if depth > limit.MaxIndexDepth {
		return fmt.Errorf("%w: indexes in indexes, more than %d deep", fault.ErrLimit, limit.MaxIndexDepth)
	}
	if !manifest.MIMETypeIsMultiImage(entry.MediaType) {
		one := w.src.image()
		one.Digest, one.MediaType = entry.Digest, entry.MediaType
		return w.image(ctx, one, text, entry)
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
		text, kind, admitted, err := w.src.entry(ctx, entry, admitted)
		if err != nil {
			return err
		}
		entry.MediaType = kind
		if err := w.add(ctx, text, entry, admitted, depth+1); err != nil {
			return err
		}
	}
	return nil
}
