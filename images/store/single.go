package store

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/verify"
)

// Single has the methods of a [Reader] with one image, except those for blobs. The place has no name and no tags, and
// nothing is attached to the image.
type Single struct {
	// Top is the descriptor of the manifest or index, and Text is its text.
	Top  v1.Descriptor
	Text []byte
	// Entry, unless nil, returns the manifest with a digest that an index of the image names.
	Entry func(ctx context.Context, d digest.Digest) (text []byte, mediaType string, err error)
}

// NewSingle returns an image by the text of its manifest or index.
func NewSingle(text []byte, mediaType string) Single {
	return Single{Text: text,
		Top: v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}}
}

// Name returns nothing.
func (Single) Name() string { return "" }

// Can tells that the place can do nothing beyond what every place does.
func (Single) Can() Abilities { return Abilities{} }

// Head returns the descriptor of the manifest with a digest.
func (s Single) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	return HeadOf(ctx, s.Manifest, name)
}

// Manifest returns the manifest of the image, or that of an entry of its index, whose digest is compared.
func (s Single) Manifest(ctx context.Context, name string) (text []byte, mediaType string, err error) {
	d := digest.Digest(name)
	if d == s.Top.Digest {
		return bytes.Clone(s.Text), s.Top.MediaType, nil
	}
	if s.Entry == nil || verify.Digest(d) != nil {
		return nil, "", fmt.Errorf("%w: %.140q is not in the image", fs.ErrNotExist, name)
	}
	if text, mediaType, err = s.Entry(ctx, d); err != nil {
		return nil, "", err
	}
	if err := verify.Manifest(text, d); err != nil {
		return nil, "", err
	}
	return text, mediaType, nil
}

// Tags returns none.
func (Single) Tags(context.Context, int) ([]string, bool, error) { return nil, true, nil }

// Referrers returns none.
func (Single) Referrers(context.Context, digest.Digest, func(string) bool) ([]v1.Descriptor, error) {
	return nil, nil
}

// HeadOf is like [Reader.Head], for places that read a manifest for its descriptor, by [Reader.Manifest].
func HeadOf(ctx context.Context, read func(context.Context, string) ([]byte, string, error),
	name string) (v1.Descriptor, error) {
	text, mediaType, err := read(ctx, name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}, nil
}
