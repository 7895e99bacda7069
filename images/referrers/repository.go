package referrers

import (
	"context"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Reader reads the manifests and blobs of one place of images: a repository of a registry, or an OCI layout. It is safe
// for concurrent use.
type Reader interface {
	// Manifest returns the text and media type of the manifest with a digest or a tag. A text that was asked for by
	// its digest has that digest. The error is [fs.ErrNotExist] if there is no such manifest.
	Manifest(ctx context.Context, name string) (text []byte, mediaType string, err error)
	// Blob opens a blob. The reader fails at its end if the digest or the size differs from the descriptor.
	Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error)
	// Referrers returns the descriptors that are listed for a subject, in the order of the list and unchecked; none if
	// nothing is listed. An error of the registry is an error, not an empty list.
	Referrers(ctx context.Context, subject digest.Digest) ([]v1.Descriptor, error)
}

// Writer also writes to the place.
type Writer interface {
	Reader
	// WriteBlob writes a blob unless it is there. open is called once for each attempt.
	WriteBlob(ctx context.Context, d v1.Descriptor, open func(context.Context) (io.ReadCloser, error)) error
	// WriteManifest writes a manifest under its digest. A manifest with a subject is listed among the referrers of
	// the subject, once.
	WriteManifest(ctx context.Context, text []byte, mediaType string) error
	// UpdateTag replaces the manifest of a tag by what change returns for the present one, which is nil if there is
	// none. A nil text leaves it. If another client writes the tag at the same time, change is called again with the
	// new manifest, perhaps not before the writer is committed: then a context of the call may have ended.
	UpdateTag(ctx context.Context, tag string, change func(old []byte) (text []byte, mediaType string, err error)) error
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

// Attachment is something that is written beside an image, such as its signatures. images.Copy calls Attach for each
// destination when the manifests are there, and before the tag or the name of the image is written.
type Attachment interface {
	Attach(ctx context.Context, to Writer, image Image) error
}
