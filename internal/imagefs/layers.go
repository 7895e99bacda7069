package imagefs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
	"github.com/operator-bindery/bindery/internal/verify"
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
	plain, err := Decompress(blob, l.MediaType, l.Size)
	if err != nil {
		return 0, blame(err, blob)
	}
	defer plain.Close()
	counted := &bounded{r: plain, x: &r.x, compressed: l.Size}
	if err := r.archive(verify.NewReader(counted, s.DiffIDs[n], -1), take); err != nil {
		return counted.n, blame(err, blob)
	}
	return counted.n, nil
}

// archive reads one archive to its end.
func (r *Reader) archive(in io.Reader, take func(string, *tar.Header, io.Reader) error) error {
	end := &endReader{r: in}
	tr := tar.NewReader(end)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return end.finish()
		}
		if err != nil {
			return end.archiveError(err)
		}
		if r.x.entries++; r.x.entries > r.x.limits.Entries {
			return limit.Errorf(limit.Entries, int64(r.x.limits.Entries), "more than %d entries", r.x.limits.Entries)
		}
		name, err := EntryName(h)
		if err != nil {
			return err
		}
		if IsSparse(h) {
			return fmt.Errorf("%w: %.200q is a sparse file", fault.ErrLimit, name)
		}
		if err := take(name, h, contentReader{tr}); err != nil {
			return err
		}
	}
}

// contentReader classifies errors of reading an archive.
type contentReader struct{ r io.Reader }

func (c contentReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF {
		err = ArchiveError(err)
	}
	return n, err
}
