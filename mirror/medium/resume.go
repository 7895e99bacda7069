package medium

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/transfer"
)

// resume reads what an interrupted run left: unfinished segments in their order, blob by blob. The first member that is
// torn, whose digest differs or that is no blob ends it: that and what is behind it is cut off. As a manifest is
// written after its blobs, what stays holds all that its manifests refer to.
func (w *Writer) resume(ctx context.Context, names []string) error {
	n := 0
	for n < len(names) && names[n] == partial(n+1) {
		n++
		if n == maxSegments {
			break
		}
		s, err := w.reopen(ctx, n)
		if err != nil {
			return fmt.Errorf("going on with %s: %w", partial(n), err)
		}
		w.cur = s
		if n == len(names) || !s.whole {
			break
		}
		// There is another one, so this one had its end.
		if err := w.endSegment(); err != nil {
			return err
		}
	}
	for _, name := range names[min(n, len(names)):] {
		if err := w.root.Remove(name); err != nil {
			return err
		}
	}
	for _, p := range w.blobs {
		w.resumed += p.size
	}
	return nil
}

// reopen reads an unfinished segment and opens it for more.
func (w *Writer) reopen(ctx context.Context, n int) (_ *segment, err error) {
	old, length, err := openRegular(w.root, partial(n))
	if err != nil {
		return nil, err
	}
	if err := old.Close(); err != nil {
		return nil, err
	}
	f, err := w.root.OpenFile(partial(n), os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	s := &segment{n: n, f: f, sum: sha256.New()}
	r := &scan{w: w, s: s, length: length}
	for {
		m, err := s.mark()
		if err != nil {
			return nil, err
		}
		whole, err := r.member(ctx)
		if err != nil {
			return nil, err
		}
		if !whole {
			return s, s.rollback(m)
		}
	}
}

// scan reads a segment that is continued.
type scan struct {
	w      *Writer
	s      *segment
	length int64
}

// errTorn ends the reading of a segment.
var errTorn = errors.New("torn")

// member reads one blob. whole is false at the end of what can be kept.
func (r *scan) member(ctx context.Context) (whole bool, err error) {
	k, size, err := r.header()
	if errors.Is(err, errTorn) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	at := r.s.size
	sum := sha256.New()
	_, err = ctxio.Copy(io.MultiWriter(sum, counted{r.s}), ctxio.Reader{Ctx: ctx, R: io.LimitReader(r.s.f, size)})
	if err != nil {
		return false, err
	}
	if digest.NewDigest(digest.SHA256, sum) != k.digest() {
		return false, nil
	}
	padding, err := r.read(padded(size) - size)
	if errors.Is(err, errTorn) || err == nil && len(bytes.Trim(padding, "\x00")) > 0 {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	r.s.members++
	if _, twice := r.w.blobs[k]; !twice {
		r.w.blobs[k] = place{segment: r.s.n, at: at, size: size}
	}
	r.w.event(Event{Kind: transfer.EventVerified, Blob: k.digest(), Size: size, Done: size})
	return true, nil
}

// header reads the header of a blob and compares it with the one that would be written.
func (r *scan) header() (k key, size int64, err error) {
	head, err := r.read(block)
	if err != nil {
		return k, 0, err
	}
	if len(bytes.Trim(head, "\x00")) == 0 {
		rest, err := r.read(block)
		if err == nil && len(bytes.Trim(rest, "\x00")) == 0 && r.s.size == r.length {
			r.s.whole = true
		}
		return k, 0, errors.Join(err, errTorn)
	}
	if head[156] == tar.TypeXHeader { // a size that does not fit into the block: one of records, and the block itself
		more, err := r.read(2 * block)
		if err != nil {
			return k, 0, err
		}
		head = append(head, more...)
	}
	h, err := tar.NewReader(bytes.NewReader(head)).Next()
	if err != nil {
		return k, 0, errTorn
	}
	k, ok := r.w.o.Form.blobKey(h.Name)
	want, err := header(h.Name, h.Size)
	if err != nil || !ok || !bytes.Equal(head, want) || h.Size > r.length-r.s.size {
		return k, 0, errTorn
	}
	return k, h.Size, nil
}

// read reads bytes of the segment. The error is errTorn if there are fewer.
func (r *scan) read(n int64) ([]byte, error) {
	if n > r.length-r.s.size {
		return nil, errTorn
	}
	b := make([]byte, n)
	if _, err := io.ReadFull(r.s.f, b); err != nil {
		return nil, err
	}
	_, err := counted{r.s}.Write(b)
	return b, err
}

// counted counts bytes that are in the segment.
type counted struct{ s *segment }

func (c counted) Write(p []byte) (int, error) {
	c.s.size += int64(len(p))
	return c.s.sum.Write(p)
}
