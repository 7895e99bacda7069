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

	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Source is an image in a registry, and the repository that it is read from, which may be that of a mirror. The
// manifest of its tag has been read; everything else is read by digest.
type Source struct {
	*Repository
	// OpenedAt is the reference that was read, in the registry or a mirror.
	OpenedAt string
	at       reference.Named // the same
	text     []byte
	kind     string

	mu    sync.Mutex
	sizes verify.Sizes // of what the manifests that were read refer to
}

var _ store.Reader = (*Source)(nil)

// Top returns the descriptor of the image.
func (s *Source) Top() v1.Descriptor {
	return v1.Descriptor{MediaType: s.kind, Digest: digest.FromBytes(s.text), Size: int64(len(s.text))}
}

// Manifest returns the text and media type of the manifest with a tag or a digest. Those that are read by their digests
// must agree on the sizes of what they refer to.
func (s *Source) Manifest(ctx context.Context, name string) ([]byte, string, error) {
	d := digest.Digest(name)
	if d == digest.FromBytes(s.text) {
		return bytes.Clone(s.text), s.kind, nil
	}
	text, kind, err := s.Repository.Manifest(ctx, name)
	if err != nil || verify.Digest(d) != nil {
		return text, kind, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sizes == nil {
		s.sizes = verify.Sizes{}
		err = s.sizes.AddManifest(s.text)
	}
	if err = errors.Join(err, s.sizes.AddManifest(text)); err != nil {
		return nil, "", fmt.Errorf("manifest %s: %w", d, err)
	}
	return text, kind, nil
}

// cachedManifest reads a manifest by its tag or digest, from the cache if it is there.
func (p *repository) cachedManifest(ctx context.Context, cache *blobcache.Cache, name string, accept []string,
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
	if text, kind, _, err = p.manifest(ctx, name, accept, retries); err != nil {
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
