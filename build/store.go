package build

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Store returns the image as a place with one image, its [Image.Top]. It has no tags, and nothing is attached to it.
func (i *Image) Store() store.Reader {
	sizes := map[digest.Digest]int64{}
	for _, text := range append(slices.Collect(maps.Values(i.manifests)), i.manifest) {
		if parts, err := store.PartsOf(text); err == nil {
			for _, d := range parts.Blobs {
				sizes[d.Digest] = d.Size
			}
		}
	}
	return place{source{i}, sizes}
}

// Top returns the descriptor of the index or manifest.
func (i *Image) Top() v1.Descriptor {
	return v1.Descriptor{MediaType: i.MediaType, Digest: i.Digest, Size: int64(len(i.manifest))}
}

// place reads an assembled image.
type place struct {
	src   source
	sizes map[digest.Digest]int64 // of the blobs
}

func (place) Name() string { return "" }

func (p place) Can() store.Abilities {
	return store.Abilities{Complete: true, Repositories: p.src.BlobRepositories,
		File: func(ctx context.Context, d digest.Digest, make bool) (string, bool) {
			if path, ok := p.src.LocalBlob(d); ok || !make {
				return path, ok
			}
			return p.src.BlobFile(ctx, d)
		}}
}

func (p place) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	text, mediaType, err := p.Manifest(ctx, name)
	return v1.Descriptor{MediaType: mediaType, Digest: digest.Digest(name), Size: int64(len(text))}, err
}

func (p place) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	d := digest.Digest(name)
	if _, ok := p.src.image.manifests[d]; !ok && d != p.src.image.Digest {
		return nil, "", fmt.Errorf("%w: %.140q is not in the image", fs.ErrNotExist, name)
	}
	return p.src.GetManifest(ctx, &d)
}

func (p place) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	size, known := p.sizes[d.Digest]
	return known && size == d.Size && p.src.image.hasBlob(d.Digest), nil
}

func (p place) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	return store.Skip(func() (io.ReadCloser, error) {
		if !p.src.image.hasBlob(d.Digest) {
			return nil, fmt.Errorf("%w: no blob %s in the image", fs.ErrNotExist, d.Digest)
		}
		r, _, err := p.src.GetBlob(ctx, types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType},
			none.NoCache)
		if err != nil || verify.Verifies(r, d.Digest, d.Size) {
			return r, err
		}
		return verify.Body(ctx, r, d.Digest, d.Size), nil
	}, from)
}

func (place) Tags(context.Context, int) ([]string, bool, error) { return nil, true, nil }

func (place) Referrers(context.Context, digest.Digest, func(string) bool) ([]v1.Descriptor, error) {
	return nil, nil
}

// hasBlob tells whether a blob is one of the image.
func (i *Image) hasBlob(d digest.Digest) bool {
	_, config := i.configs[d]
	_, file := i.files[d]
	_, lazy := i.lazy[d]
	_, base := i.bases[d]
	_, remote := i.remote[d]
	return config || file || lazy || base || remote
}
