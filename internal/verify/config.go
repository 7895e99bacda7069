package verify

import (
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// ReadConfig reads a configuration and checks its digest.
func ReadConfig(ctx context.Context, src types.ImageSource, d v1.Descriptor) (_ []byte, err error) {
	if err := Digest(d.Digest); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	if d.Size < 0 || d.Size > limit.MaxManifest {
		return nil, fmt.Errorf("configuration: %w: size %d (limit %d)", fault.ErrLimit, d.Size, limit.MaxManifest)
	}
	r, _, err := src.GetBlob(ctx, types.BlobInfo{Digest: d.Digest, Size: d.Size, MediaType: d.MediaType}, none.NoCache)
	if err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return io.ReadAll(NewReader(r, d.Digest, d.Size))
}
