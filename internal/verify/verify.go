// Package verify checks content against its digest and size while it is read.
package verify

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// Reader fails at the end of the stream if the content does not match. It reads at most one byte more than the expected
// size.
type Reader struct {
	r    io.Reader
	h    hash.Hash
	want digest.Digest
	size int64 // negative if unknown
	n    int64
}

// NewReader returns a reader of r that fails at the end unless the content has the digest and the size; a negative size
// is not checked.
func NewReader(r io.Reader, want digest.Digest, size int64) *Reader {
	return &Reader{r: r, h: sha256.New(), want: want, size: size}
}

// Body returns a blob that is read of r as that of [NewReader], until the context has ended, and closed with it.
func Body(ctx context.Context, r io.ReadCloser, want digest.Digest, size int64) io.ReadCloser {
	return struct {
		*Reader
		io.Closer
	}{NewReader(ctxio.Reader{Ctx: ctx, R: r}, want, size), r}
}

func (v *Reader) Read(p []byte) (int, error) {
	n, err := v.r.Read(p)
	v.h.Write(p[:n])
	v.n += int64(n)
	if v.size >= 0 && v.n > v.size {
		return 0, fmt.Errorf("%s: %w: size is more than %d bytes", v.want, fault.ErrIntegrity, v.size)
	}
	if err != io.EOF {
		return n, err
	}
	if v.size >= 0 && v.n < v.size {
		return n, fmt.Errorf("%s: %w: unexpected end: size is %d bytes and not %d", v.want, fault.ErrIntegrity, v.n,
			v.size)
	}
	if got := digest.NewDigest(digest.SHA256, v.h); got != v.want {
		return n, fmt.Errorf("%w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, v.want)
	}
	return n, io.EOF
}

// Verifies tells whether the reader compares a content with that digest and size, from its first byte on.
func (v *Reader) Verifies(d digest.Digest, size int64) bool {
	return v.want == d && v.size == size && v.n == 0
}

// Verifies tells whether a reader compares what is read of it with that digest and size itself, as one with [*Reader]
// in it does, so that it is done once.
func Verifies(r any, d digest.Digest, size int64) bool {
	v, ok := r.(interface {
		Verifies(d digest.Digest, size int64) bool
	})
	return ok && v.Verifies(d, size)
}

// Manifest returns an error unless the text of a manifest has a digest.
func Manifest(text []byte, want digest.Digest) error {
	if got := digest.FromBytes(text); got != want {
		return fmt.Errorf("manifest: %w: digest mismatch: %s instead of %s", fault.ErrIntegrity, got, want)
	}
	return nil
}

// ManifestSize returns an error for a manifest of more than [limit.MaxManifest] bytes.
func ManifestSize(size int64) error {
	if size > limit.MaxManifest {
		return fmt.Errorf("manifest: %w: %d bytes (limit %d)", fault.ErrLimit, size, limit.MaxManifest)
	}
	return nil
}

// Size returns an error unless the size of a blob is that of its descriptor.
func Size(d v1.Descriptor, size int64) error {
	if size != d.Size {
		return fmt.Errorf("%s: %w: size is %d and not %d", d.Digest, fault.ErrIntegrity, size, d.Size)
	}
	return nil
}

// Digest returns an error for anything but a well-formed sha256 digest.
func Digest(d digest.Digest) error {
	if err := d.Validate(); err != nil {
		return fmt.Errorf("%w: invalid digest %.120q: %v", fault.ErrInvalid, string(d), err)
	}
	if d.Algorithm() != digest.SHA256 {
		return fmt.Errorf("%w: invalid digest %.120q: unsupported algorithm", fault.ErrInvalid, string(d))
	}
	return nil
}
