package images

import (
	"context"
	"fmt"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// FromSource returns the image of a source of the containers library as one at a place: it has no tags, and nothing is
// attached to it. Every manifest and blob is compared with its digest. The source must stay open as long as the image is
// used.
func FromSource(ctx context.Context, src types.ImageSource) (Source, error) {
	text, kind, err := src.GetManifest(ctx, nil)
	if err != nil {
		return Source{}, err
	}
	if kind == "" {
		kind = manifest.GuessMIMEType(text)
	}
	top := v1.Descriptor{MediaType: kind, Digest: digest.FromBytes(text), Size: int64(len(text))}
	return Source{&sourceReader{src: src, top: top.Digest}, top}, nil
}

// sourceReader reads a source of the containers library.
type sourceReader struct {
	src types.ImageSource
	top digest.Digest
	can store.Abilities
}

func (*sourceReader) Name() string { return "" }

func (r *sourceReader) Can() store.Abilities { return r.can }

func (r *sourceReader) Head(ctx context.Context, name string) (v1.Descriptor, error) {
	text, kind, err := r.Manifest(ctx, name)
	return v1.Descriptor{MediaType: kind, Digest: digest.Digest(name), Size: int64(len(text))}, err
}

func (r *sourceReader) Manifest(ctx context.Context, name string) (text []byte, kind string, err error) {
	d := digest.Digest(name)
	if verify.Digest(d) != nil {
		return nil, "", fmt.Errorf("%w: the image has no tag %.140q", fs.ErrNotExist, name)
	}
	instance := &d
	if d == r.top {
		instance = nil
	}
	if text, kind, err = r.src.GetManifest(ctx, instance); err != nil {
		return nil, "", err
	}
	if got := digest.FromBytes(text); got != d {
		return nil, "", fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, d)
	}
	if kind == "" {
		kind = manifest.GuessMIMEType(text)
	}
	return text, kind, nil
}

func (r *sourceReader) HasBlob(ctx context.Context, d v1.Descriptor) (bool, error) {
	b, err := r.Blob(ctx, d, 0)
	if err != nil {
		return false, nil
	}
	return true, b.Close()
}

func (r *sourceReader) Blob(ctx context.Context, d v1.Descriptor, from int64) (io.ReadCloser, error) {
	return store.Skip(func() (io.ReadCloser, error) {
		b, _, err := r.src.GetBlob(ctx, types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType},
			none.NoCache)
		if err != nil || verify.Verifies(b, d.Digest, d.Size) {
			return b, err
		}
		return struct {
			*verify.Reader
			io.Closer
		}{verify.NewReader(ctxio.Reader{Ctx: ctx, R: b}, d.Digest, d.Size), b}, nil
	}, from)
}

func (*sourceReader) Tags(context.Context, int) ([]string, bool, error) {
	return nil, false, store.ErrNoTags
}

func (*sourceReader) Referrers(context.Context, digest.Digest, func(string) bool) ([]v1.Descriptor, error) {
	return nil, nil
}
