package signature

import (
	"bytes"
	"context"
	"fmt"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

// tagOf returns the tag of the signatures (.sig) or attestations (.att) of the subject.
func (v *verifier) tagOf(in form) string { return referrers.TagOf(v.subject, "."+string(in)) }

// read reads a blob of at most so many bytes, and counts them for the image.
func (v *verifier) read(ctx context.Context, d v1.Descriptor, most int64) ([]byte, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	switch {
	case d.Size < 0:
		return nil, fmt.Errorf("%w: size %d", fault.ErrInvalid, d.Size)
	case d.Size > most:
		return nil, fmt.Errorf("%w: %d bytes (limit %d)", fault.ErrLimit, d.Size, most)
	case d.Size > v.left.content:
		return nil, fmt.Errorf("%w: the signatures of the image have more than %d bytes", fault.ErrLimit, maxTotal)
	}
	v.left.content -= d.Size
	r, err := v.r.Blob(ctx, d, 0)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var content bytes.Buffer
	content.Grow(int(d.Size))
	if _, err := io.Copy(&content, io.LimitReader(r, d.Size+1)); err != nil {
		return nil, err
	}
	if int64(content.Len()) != d.Size || d.Digest.Algorithm().FromBytes(content.Bytes()) != d.Digest {
		return nil, fmt.Errorf("%w: %s has other content", fault.ErrIntegrity, d.Digest)
	}
	return content.Bytes(), nil
}
