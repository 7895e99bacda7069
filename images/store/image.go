package store

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

// ReadImage describes the image with a descriptor: its entries if it is an index, and those of indexes in it. Manifests
// that are no indexes are not read, and may be missing. The name of the result is empty. Errors are of the classes
// [fault.ErrInvalid], [fault.ErrLimit] and [fault.ErrIntegrity], or those of the reader.
func ReadImage(ctx context.Context, r Reader, top v1.Descriptor) (Image, error) {
	top.Annotations = nil // those of an entry of a layout
	image := Image{Top: top}
	if err := verify.Digest(top.Digest); err != nil {
		return image, err
	}
	seen := map[digest.Digest]bool{top.Digest: true}
	var read func(d v1.Descriptor, depth int) error
	read = func(d v1.Descriptor, depth int) error {
		if depth > limit.MaxIndexDepth {
			return fmt.Errorf("%w: indexes in indexes, more than %d deep", fault.ErrLimit, limit.MaxIndexDepth)
		}
		text, err := manifestText(ctx, r, d.Digest)
		if err != nil {
			return err
		}
		if _, err := verify.ManifestKind(text, d.MediaType); err != nil {
			return err
		}
		var index v1.Index
		if err := json.Unmarshal(text, &index); err != nil {
			return fmt.Errorf("%w: index: %v", fault.ErrInvalid, err)
		}
		for _, entry := range index.Manifests {
			if err := verify.Digest(entry.Digest); err != nil {
				return fmt.Errorf("index: %w", err)
			}
			if seen[entry.Digest] {
				continue
			}
			seen[entry.Digest] = true
			if len(image.Instances) == limit.MaxIndexEntries {
				return fmt.Errorf("index: %w: more than %d entries", fault.ErrLimit, limit.MaxIndexEntries)
			}
			image.Instances = append(image.Instances, entry)
			if manifest.MIMETypeIsMultiImage(entry.MediaType) {
				if err := read(entry, depth+1); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if !manifest.MIMETypeIsMultiImage(top.MediaType) {
		return image, nil
	}
	return image, read(top, 0)
}

// manifestText reads a manifest by its digest, and compares the text with it whatever the reader does.
func manifestText(ctx context.Context, r Reader, d digest.Digest) ([]byte, error) {
	text, _, err := r.Manifest(ctx, d.String())
	if err != nil {
		return nil, err
	}
	if got := digest.FromBytes(text); got != d {
		return nil, fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, d)
	}
	return text, nil
}

// Image is an image that attachments belong to.
type Image struct {
	// Name is REPOSITORY:TAG as clients of a registry write it, or REPOSITORY@DIGEST if the image was named so; empty
	// if the image has no such name, as in most layouts.
	Name string
	// Top is the descriptor of the index or manifest that the name refers to.
	Top v1.Descriptor
	// Instances are the entries of the index, and of indexes in it, each once and with their platforms; none if Top is
	// no index.
	Instances []v1.Descriptor
}

// Subjects returns the descriptors of the image: Top and then the instances.
func (i Image) Subjects() []v1.Descriptor { return append([]v1.Descriptor{i.Top}, i.Instances...) }

// Attachment is something that is written beside an image, such as its signatures. [Copy] calls Attach for each
// destination when the manifests are there, and before the tag or the name of the image is written.
type Attachment interface {
	Attach(ctx context.Context, to Writer, image Image) error
}
