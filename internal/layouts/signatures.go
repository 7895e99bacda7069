package layouts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/sigblob"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Signatures returns the signatures that are stored with a manifest of the image. A layout has them under the name
// sha256-HEX.sig, as a registry has them under that tag; a directory of the containers tools has files signature-N and
// HEX.signature-N; an archive of docker has none. If there is none, that is no error; every failure to read one is.
func (s *Source) Signatures(ctx context.Context, of digest.Digest) ([][]byte, error) {
	if err := verify.Digest(of); err != nil {
		return nil, err
	}
	if s.signatures == nil {
		return nil, nil
	}
	found, err := s.signatures(ctx, of)
	if err != nil {
		return nil, fmt.Errorf("signatures: %w", err)
	}
	return found, nil
}

// signatures reads the signatures in a layout.
func (r *Repository) signatures(ctx context.Context, of digest.Digest) ([][]byte, error) {
	tag := sigblob.Tag(of)
	if r.index.tagged(tag) < 0 {
		return nil, nil
	}
	text, _, err := r.Manifest(ctx, tag)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tag, missing(err))
	}
	found, err := sigblob.Attached(ctx, text, func(ctx context.Context, d v1.Descriptor, _ int64) (io.ReadCloser, error) {
		blob, err := r.Blob(ctx, d, 0)
		return blob, missing(err)
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tag, err)
	}
	return found, nil
}

// missing makes a blob that is named and not there an error about the layout.
func missing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: %w", fault.ErrIntegrity, err)
	}
	return err
}

// signatures reads the signatures in a directory of the containers tools.
func (o *oneImage) signatures(_ context.Context, of digest.Digest) ([][]byte, error) {
	prefix := ""
	if of != o.top.Digest {
		prefix = of.Encoded() + "."
	}
	return sigblob.Numbered(func(n int, limit int64) ([]byte, bool, error) {
		content, err := readFileUpTo(o.files, fmt.Sprintf("%ssignature-%d", prefix, n), limit)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil
		}
		return content, err == nil, err
	})
}
