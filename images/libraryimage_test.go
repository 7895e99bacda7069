package images

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/verify"
)

// libraryReader returns an image that the library has opened as a place with one image, and its descriptor. The caller
// closes the source.
func libraryReader(ctx context.Context, src types.ImageSource) (store.Reader, v1.Descriptor, error) {
	text, mediaType, err := src.GetManifest(ctx, nil)
	if err != nil {
		return nil, v1.Descriptor{}, fmt.Errorf("manifest: %w", err)
	}
	place := &libraryImage{store.NewSingle(text, mediaType), src}
	place.Entry = func(ctx context.Context, d digest.Digest) ([]byte, string, error) { return src.GetManifest(ctx, &d) }
	return place, place.Top, nil
}

// libraryImage is the place of [libraryReader].
type libraryImage struct {
	store.Single
	src types.ImageSource
}

// HasBlob tells whether a manifest of the image names the blob, which can be opened: the library tells neither its size
// nor otherwise whether it has it.
func (o *libraryImage) HasBlob(ctx context.Context, d v1.Descriptor) (bool, error) {
	named := false
	visit := func(_ context.Context, n *store.Node) error {
		named = named || slices.ContainsFunc(n.Parts.Blobs,
			func(b v1.Descriptor) bool { return b.Digest == d.Digest && b.Size == d.Size })
		return nil
	}
	err := store.Walk(ctx, store.Node{Descriptor: o.Top, Text: o.Text, Kind: o.Top.MediaType},
		store.WalkOptions{Read: store.ReadFrom(o), Visit: visit})
	if err != nil || !named {
		return false, err
	}
	r, err := o.Blob(ctx, d, 0)
	if err != nil {
		return false, err
	}
	return true, r.Close()
}

// Blob opens a blob at an offset, by reading what is before it.
func (o *libraryImage) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	return store.Skip(func() (io.ReadCloser, error) {
		if err := verify.Digest(d.Digest); err != nil {
			return nil, err
		}
		r, _, err := o.src.GetBlob(ctx, types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType}, none.NoCache)
		if err != nil {
			return nil, err
		}
		return verify.Body(ctx, r, d.Digest, d.Size), nil
	}, from)
}
