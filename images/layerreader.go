package images

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

// LayerReader reads layers as they are, entry by entry: what upper layers hide and lower ones show is not its business. The
// limits hold for all layers together that it reads. It is not safe for concurrent use.
type LayerReader struct{ x extraction }

// NewLayerReader returns a reader within limits.
func NewLayerReader(l limit.Limits) *LayerReader {
	return &LayerReader{extraction{limits: l.WithDefaults()}}
}

// Read calls take for every entry of layer n of the image, with its clean name relative to the root ("." for that itself)
// and, for a regular file, its content. The layer is read to its end and checked against digest, size and diffID; what take
// was given before an error may not be what they say. Names that lead out of the image and sparse files are errors;
// links, devices and whiteouts are passed on. An error of take ends it. The result is the length of the archive in bytes.
func (r *LayerReader) Read(ctx context.Context, i *Image, n int, take func(name string, h *tar.Header, content io.Reader) error) (size int64, err error) {
	ctx, cancel := withDeadline(ctx, i.deadline, i.timeout)
	defer cancel()
	l := i.Layers[n]
	defer func() {
		if err != nil {
			err = fmt.Errorf("layer %d (%s): %w", n, l.Digest, err)
		}
	}()
	if r.x.compressed += l.Size; r.x.compressed > r.x.limits.Compressed || r.x.compressed < 0 {
		return 0, limit.Errorf(limit.Compressed, r.x.limits.Compressed, "the layers have more than %d bytes", r.x.limits.Compressed)
	}
	blob, err := i.blob(ctx, l)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, blob.Close()) }()
	plain, err := decompress(blob, l.MediaType, l.Size)
	if err != nil {
		return 0, blame(err, blob)
	}
	defer plain.Close()
	counted := &budget{r: plain, x: &r.x, compressed: l.Size}
	if err := r.archive(verify.NewReader(counted, i.Config.RootFS.DiffIDs[n], -1), take); err != nil {
		return counted.n, blame(err, blob)
	}
	return counted.n, nil
}

// archive reads one archive to its end.
func (r *LayerReader) archive(in io.Reader, take func(string, *tar.Header, io.Reader) error) error {
	end := &endReader{r: in}
	tr := tar.NewReader(end)
	for {
		h, err := tr.Next()
		if err == io.EOF {
			return end.finish()
		}
		if err != nil {
			return archiveError(err)
		}
		if r.x.entries++; r.x.entries > r.x.limits.Entries {
			return limit.Errorf(limit.Entries, int64(r.x.limits.Entries), "more than %d entries", r.x.limits.Entries)
		}
		name, err := entryName(h)
		if err != nil {
			return err
		}
		if isSparse(h) {
			return fmt.Errorf("%w: %.200q is a sparse file", fault.ErrLimit, name)
		}
		if err := take(name, h, contentReader{tr}); err != nil {
			return err
		}
	}
}

// contentReader gives the errors of an archive's content their classes.
type contentReader struct{ r io.Reader }

func (c contentReader) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	if err != nil && err != io.EOF {
		err = archiveError(err)
	}
	return n, err
}
