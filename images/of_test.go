package images

import (
	"context"
	"testing"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/types"
)

// of opens a reference of the containers library for Copy, with what its source can tell of blobs.
func of(t testing.TB, ref types.ImageReference) Source {
	t.Helper()
	src, err := ref.NewImageSource(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	out, err := FromSource(context.Background(), src)
	if err != nil {
		t.Fatal(err)
	}
	r := out.Reader.(*sourceReader)
	if known, ok := src.(interface {
		BlobRepositories(digest.Digest) []string
	}); ok {
		r.can.Repositories = known.BlobRepositories
	}
	local, isLocal := src.(interface {
		LocalBlob(digest.Digest) (string, bool)
	})
	files, makes := src.(interface {
		BlobFile(context.Context, digest.Digest) (string, bool)
	})
	r.can.File = func(ctx context.Context, d digest.Digest, make bool) (string, bool) {
		if isLocal && !make {
			return local.LocalBlob(d)
		}
		if makes && make {
			return files.BlobFile(ctx, d)
		}
		return "", false
	}
	return out
}
