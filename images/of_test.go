package images

import (
	"context"
	"testing"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/images/transport"
)

// placed is an image at a place, with what the place can tell of blobs.
type placed struct {
	store.Reader
	top v1.Descriptor
	can store.Abilities
}

func (p placed) Can() store.Abilities { return p.can }

// of opens a reference of the containers library for a copy.
func of(t testing.TB, ref types.ImageReference) placed {
	t.Helper()
	src, err := ref.NewImageSource(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	var p placed
	if p.Reader, p.top, err = libraryReader(context.Background(), src); err != nil {
		t.Fatal(err)
	}
	if known, ok := src.(interface {
		BlobRepositories(digest.Digest) []string
	}); ok {
		p.can.Repositories = known.BlobRepositories
	}
	local, isLocal := src.(interface {
		LocalBlob(digest.Digest) (string, bool)
	})
	files, makes := src.(interface {
		BlobFile(context.Context, digest.Digest) (string, bool)
	})
	p.can.File = func(ctx context.Context, d digest.Digest, make bool) (string, bool) {
		if isLocal && !make {
			return local.LocalBlob(d)
		}
		if makes && make {
			return files.BlobFile(ctx, d)
		}
		return "", false
	}
	return p
}

// copyOf is Copy of an image at a place.
func copyOf(ctx context.Context, p placed, dests []transport.Destination, o CopyOptions) ([]Result, error) {
	if o.Transports == nil {
		o.Transports = transports
	}
	return Copy(ctx, p, p.top, dests, o)
}
