package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Store returns the image as a place with one image, its [Image.Top]. It has no tags, and nothing is attached to it. It
// is safe for concurrent use.
func (i *Image) Store() store.Reader {
	sizes := map[digest.Digest]int64{}
	for _, text := range append(slices.Collect(maps.Values(i.manifests)), i.manifest) {
		if parts, err := store.PartsOf(text); err == nil {
			for _, d := range parts.Blobs {
				sizes[d.Digest] = d.Size
			}
		}
	}
	manifest := func(_ context.Context, d digest.Digest) ([]byte, string, error) {
		text, ok := i.manifests[d]
		if !ok {
			return nil, "", fmt.Errorf("%w: %.140q is not in the image", fs.ErrNotExist, d)
		}
		return bytes.Clone(text), manifestType(i.MediaType), nil
	}
	return place{store.Single{Top: i.Top(), Text: i.manifest, Entry: manifest}, i, sizes}
}

// Top returns the descriptor of the index or manifest.
func (i *Image) Top() v1.Descriptor {
	return v1.Descriptor{MediaType: i.MediaType, Digest: i.Digest, Size: int64(len(i.manifest))}
}

// place reads an assembled image.
type place struct {
	store.Single
	image *Image
	sizes map[digest.Digest]int64 // of the blobs
}

// Can tells where blobs are: layers can be mounted from the repositories of the base, of reused images, of the previous
// image, and of earlier pushes; and they are files, or one can be made.
func (p place) Can() store.Abilities {
	return store.Abilities{Complete: true,
		Repositories: func(d digest.Digest) []string { return p.image.lenders[d] },
		File: func(ctx context.Context, d digest.Digest, make bool) (path string, ok bool) {
			if l, lazy := p.image.lazy[d]; lazy {
				if path, ok = l.path(); ok || !make {
					return path, ok
				}
				return l.file(ctx)
			}
			path, ok = p.image.files[d]
			return path, ok
		}}
}

func (p place) HasBlob(_ context.Context, d v1.Descriptor) (bool, error) {
	size, known := p.sizes[d.Digest]
	return known && size == d.Size, nil
}

// Blob opens a configuration or a layer. A layer may be written, or fetched from the base or another image, only at this
// point.
func (p place) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	return store.Skip(func() (io.ReadCloser, error) {
		r, _, err := p.image.open(ctx, d.Digest)
		if err != nil || verify.Verifies(r, d.Digest, d.Size) {
			return r, err
		}
		return verify.Body(ctx, r, d.Digest, d.Size), nil
	}, from)
}

// open opens a blob, and returns its size.
func (i *Image) open(ctx context.Context, d digest.Digest) (io.ReadCloser, int64, error) {
	if config, ok := i.configs[d]; ok {
		return io.NopCloser(bytes.NewReader(config)), int64(len(config)), nil
	}
	if path, ok := i.files[d]; ok {
		f, err := os.Open(path)
		if err != nil {
			return nil, 0, err
		}
		stat, err := f.Stat()
		if err != nil {
			return nil, 0, errors.Join(err, f.Close())
		}
		return f, stat.Size(), nil
	}
	if l, ok := i.lazy[d]; ok {
		return l.open(ctx)
	}
	if b, ok := i.bases[d]; ok {
		return b.blob(ctx, d)
	}
	if l, ok := i.remote[d]; ok {
		return l.open(ctx)
	}
	return nil, 0, fmt.Errorf("%w: no blob %s in the image", fs.ErrNotExist, d)
}
