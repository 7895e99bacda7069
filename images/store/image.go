package store

import (
	"context"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/internal/verify"
)

// ReadImage describes the image with a descriptor: its entries if it is an index, and those of indexes in it. Manifests
// that are no indexes are not read, and may be missing. The name of the result is empty. Errors are of the classes
// [fault.ErrInvalid], [fault.ErrLimit] and [fault.ErrIntegrity], or those of the reader.
func ReadImage(ctx context.Context, r Reader, top v1.Descriptor) (Image, error) {
	top.Annotations = nil // they belong to the entry of a layout
	image := Image{Top: top}
	if !manifest.MIMETypeIsMultiImage(top.MediaType) {
		return image, verify.Digest(top.Digest)
	}
	err := Walk(ctx, Node{Descriptor: top}, WalkOptions{
		Read: func(ctx context.Context, n *Node) (err error) {
			if manifest.MIMETypeIsMultiImage(n.MediaType) {
				n.Text, _, err = r.Manifest(ctx, n.Digest.String())
			}
			return err
		},
		Visit: func(_ context.Context, n *Node) error {
			if n.Above != nil {
				image.Instances = append(image.Instances, n.Descriptor)
			}
			image.Entries = append(image.Entries, n.Entries...)
			return nil
		},
	})
	return image, err
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
	// Entries are the entries of these indexes as they are written: a manifest that is listed for several platforms is
	// there once for each of them. Only [ReadImage] sets them.
	Entries []v1.Descriptor
}

// Subjects returns the descriptors of the image: Top and then the instances.
func (i Image) Subjects() []v1.Descriptor { return append([]v1.Descriptor{i.Top}, i.Instances...) }

// Attachment is something that is written beside an image, such as its signatures. [Copy] calls Attach for each
// destination when the manifests are there, and before the tag or the name of the image is written.
type Attachment interface {
	Attach(ctx context.Context, to Writer, image Image) error
}
