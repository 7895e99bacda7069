package images

import (
	"context"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Blob opens a blob of the image, such as one of its layers. The reader fails at the end with [ErrIntegrity] if the
// digest or size differs from the descriptor. Errors contain no credentials.
func (i *Image) Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	r, err := i.open(ctx, d)
	return r, redact.Error(err)
}

func (i *Image) open(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	return i.opened.reader.Blob(ctx, d, 0)
}
