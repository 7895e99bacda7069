package images

import (
	"context"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Blob opens a blob of the image, one of Layers say. Reading it to its end fails with [ErrIntegrity] if it has another digest
// or size than the descriptor says. Errors show no credentials.
func (i *Image) Blob(ctx context.Context, d v1.Descriptor) (io.ReadCloser, error) {
	if err := verify.Digest(d.Digest); err != nil {
		return nil, err
	}
	r, err := i.blob(ctx, d)
	return r, redact.Error(err)
}
