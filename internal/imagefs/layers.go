package imagefs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/internal/limit"
)

// Reader reads layers entry by entry, without applying them to each other. The limits hold for all layers together that
// it reads. It is not safe for concurrent use.
type Reader struct{ x extraction }

func NewReader(l limit.Limits) *Reader {
	return &Reader{extraction{limits: l.WithDefaults()}}
}

// Read calls take for each entry of layer n; see images.LayerReader.
func (r *Reader) Read(ctx context.Context, s *Layers, n int,
	take func(name string, h *tar.Header, content io.Reader) error) (size int64, err error) {
	l := s.Layers[n]
	defer func() {
		if err != nil {
			err = fmt.Errorf("layer %d (%s): %w", n, l.Digest, err)
		}
	}()
	if r.x.compressed += l.Size; r.x.compressed > r.x.limits.Compressed || r.x.compressed < 0 {
		return 0, limit.Errorf(limit.Compressed, r.x.limits.Compressed, "the layers have more than %d bytes",
			r.x.limits.Compressed)
	}
	blob, err := s.Open(ctx, l)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	return r.x.layer(blob, l, s.DiffIDs[n], take)
}
