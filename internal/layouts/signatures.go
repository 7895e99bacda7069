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

// GetSignatures returns the signatures that are stored with the image, or with one instance of its index. A layout has
// them under the name sha256-HEX.sig, as a registry has them under that tag; a directory of the containers tools has
// files signature-N and HEX.signature-N; an archive of docker has none. If there is none, that is no error; every
// failure to read one is.
func (s *Source) GetSignatures(ctx context.Context, instance *digest.Digest) ([][]byte, error) {
	if instance != nil {
		if err := verify.Digest(*instance); err != nil {
			return nil, err
		}
	}
	if s.signatures == nil {
		return nil, nil
	}
	found, err := s.signatures(ctx, instance)
	if err != nil {
		return nil, fmt.Errorf("signatures: %w", err)
	}
	return found, nil
}

// layoutSignatures reads the signatures in a layout.
func (s *Source) layoutSignatures(ctx context.Context, instance *digest.Digest) ([][]byte, error) {
	of := s.top.Digest
	if instance != nil {
		of = *instance
	}
	tag := sigblob.Tag(of)
	if s.repository.index.tagged(tag) < 0 {
		return nil, nil
	}
	text, _, err := s.repository.Manifest(ctx, tag)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tag, missing(err))
	}
	found, err := sigblob.Attached(ctx, text, func(ctx context.Context, d v1.Descriptor, _ int64) (io.ReadCloser, error) {
		r, err := s.repository.Blob(ctx, d, 0)
		return r, missing(err)
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

// directorySignatures reads the signatures in a directory of the containers tools.
func (s *Source) directorySignatures(_ context.Context, instance *digest.Digest) ([][]byte, error) {
	prefix := ""
	if instance != nil {
		prefix = instance.Encoded() + "."
	}
	return sigblob.Numbered(func(n int, limit int64) ([]byte, bool, error) {
		content, err := readFileUpTo(s.files, fmt.Sprintf("%ssignature-%d", prefix, n), limit)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, false, nil
		}
		return content, err == nil, err
	})
}
