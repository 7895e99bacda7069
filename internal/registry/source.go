package registry

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/blobcache"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/transfer"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Source is an image in a registry. The manifest of its tag has been read; everything else is read by digest.
type Source struct {
	ref   types.ImageReference
	repo  *repository
	cache *blobcache.Cache
	// OpenedAt is the reference that was read, in the registry or a mirror.
	OpenedAt string
	at       reference.Named // the same
	text     []byte
	kind     string

	mu    sync.Mutex
	sizes verify.Sizes // of what the manifests that were read refer to
}

var _ types.ImageSource = (*Source)(nil)

func (s *Source) GetManifest(ctx context.Context, instance *digest.Digest) ([]byte, string, error) {
	if instance == nil {
		return bytes.Clone(s.text), s.kind, nil
	}
	if err := verify.Digest(*instance); err != nil {
		return nil, "", err
	}
	text, kind, err := s.manifest(ctx, instance.String(), s.repo.host.r.o.Retries)
	if err != nil {
		return nil, "", remoteError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes == nil {
		s.sizes = verify.Sizes{}
		err = s.sizes.AddManifest(s.text)
	}
	if err = errors.Join(err, s.sizes.AddManifest(text)); err != nil {
		return nil, "", fmt.Errorf("manifest %s: %w", *instance, err)
	}
	return text, kind, nil
}

// manifest reads a manifest by its tag or digest, from the cache if it is there.
func (s *Source) manifest(ctx context.Context, name string, retries int) (text []byte, kind string, err error) {
	return s.repo.cachedManifest(ctx, s.cache, name, request{accept: manifestTypes}, retries)
}

// cachedManifest reads a manifest by its tag or digest, from the cache if it is there.
func (p *repository) cachedManifest(ctx context.Context, cache *blobcache.Cache, name string, q request,
	retries int) (text []byte, kind string, err error) {
	want := digest.Digest(name)
	if verify.Digest(want) != nil {
		want = ""
	} else if r, ok := cache.Open(ctx, want, -1); ok {
		defer r.Close()
		text, err := io.ReadAll(io.LimitReader(r, limit.MaxManifest+1))
		if err == nil && digest.FromBytes(text) == want {
			return text, manifest.GuessMIMEType(text), nil
		}
	}
	if text, kind, _, err = p.manifestAnswer(ctx, name, q, retries); err != nil {
		return nil, "", err
	}
	got := digest.FromBytes(text)
	if want != "" && got != want {
		return nil, "", fmt.Errorf("%w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, want)
	}
	keep := cache.Tee(got, int64(len(text)), io.NopCloser(bytes.NewReader(text)))
	_, err = io.Copy(io.Discard, keep)
	return text, kind, errors.Join(err, keep.Close())
}

func (s *Source) GetBlob(ctx context.Context, info types.BlobInfo,
	_ types.BlobInfoCache) (io.ReadCloser, int64, error) {
	if err := verify.Digest(info.Digest); err != nil {
		return nil, 0, err
	}
	r, err := s.repo.blob(ctx, v1.Descriptor{Digest: info.Digest, Size: info.Size})
	if err != nil {
		return nil, 0, remoteError(err)
	}
	return r, info.Size, nil
}

func (s *Source) Reference() types.ImageReference { return s.ref }
func (s *Source) Close() error                    { return nil }
func (s *Source) HasThreadSafeGetBlob() bool      { return true }

// LayerInfosForCopy returns nil: the layers are those of the manifest.
func (s *Source) LayerInfosForCopy(context.Context, *digest.Digest) ([]types.BlobInfo, error) {
	return nil, nil
}

// Repository returns the repository that the image was read from, which may be a mirror.
func (s *Source) Repository() *Repository {
	return &Repository{repo: s.repo, cache: s.cache, source: true}
}

// Reused reports that a blob of the image was found in the cache.
func (s *Source) Reused(d v1.Descriptor) {
	s.repo.event(transfer.EventBlobReused, d, d.Size)
}
