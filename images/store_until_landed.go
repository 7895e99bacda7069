package images

import (
	"io"

	"github.com/opencontainers/go-digest"
)

// BlobCache keeps blobs.
type BlobCache struct{}

// Open opens a blob.
func (*BlobCache) Open(digest.Digest, int64) (io.ReadCloser, bool) { return nil, false }

// Tee keeps a blob.
func (*BlobCache) Tee(_ digest.Digest, _ int64, r io.ReadCloser) io.ReadCloser { return r }

// Lock pins names.
type Lock struct{}

// Digest is a name's digest.
func (*Lock) Digest(string) (digest.Digest, bool) { return "", false }

// Record pins a name.
func (*Lock) Record(string, digest.Digest) error { return nil }
