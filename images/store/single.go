package store

import (
	"context"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// Single has the methods of a [Reader] with one image, which has no name and no tags, and to which nothing is attached.
type Single struct{}

// Name returns nothing.
func (Single) Name() string { return "" }

// Can tells that the place can do nothing beyond what every place does.
func (Single) Can() Abilities { return Abilities{} }

// Tags returns none.
func (Single) Tags(context.Context, int) ([]string, bool, error) { return nil, true, nil }

// Referrers returns none.
func (Single) Referrers(context.Context, digest.Digest, func(string) bool) ([]v1.Descriptor, error) {
	return nil, nil
}

// HeadOf is [Reader.Head] for places that read a manifest for its descriptor.
func HeadOf(ctx context.Context, r Reader, name string) (v1.Descriptor, error) {
	text, mediaType, err := r.Manifest(ctx, name)
	if err != nil {
		return v1.Descriptor{}, err
	}
	return v1.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(text), Size: int64(len(text))}, nil
}
