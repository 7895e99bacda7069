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
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/mirror/internal/nolink"
)

// resume reads what an interrupted run left: unfinished segments, blob by blob. A blob whose content is torn is a hole,
// which is filled when the blob is written again; at the end of a segment it is cut off. The first member that is no
// blob, or whose header is torn, is cut off with what is behind it.
func (w *Writer) resume(ctx context.Context, names []string) error {
	kept := 0
	for kept < len(names) && kept < maxSegments && names[kept] == partial(kept+1) {
		kept++
		if kept > 1 {
			// The next segment was begun, so the one before it was complete.
			if err := w.endSegment(); err != nil {
				return err
			}
		}
		if err := w.reopen(ctx, kept); err != nil {
			return fmt.Errorf("going on with %s: %w", partial(kept), err)
		}
	}
	for _, name := range names[kept:] {
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
func (w *Writer) reopen(ctx context.Context, n int) error {
	old, length, err := openRegular(w.root, partial(n))
	if err != nil {
		return err
	}
	info, err := old.Stat()
	if err = errors.Join(err, old.Close()); err != nil {
		return err
	}
	if err := nolink.CheckOwn(partial(n), info); err != nil {
		return err
	}
	f, err := w.root.OpenFile(partial(n), os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	s := newSegment(f, n)
	w.segments = append(w.segments, s)
	r := &scan{w: w, s: s, length: length}
	for more := true; more; {
		if more, err = r.member(ctx); err != nil {
			return err
		}
	}
	if err := f.Truncate(s.bytes()); err != nil {
		return err
	}
	return w.trimSegment()
}

// scan reads a segment that is continued.
type scan struct {
	w      *Writer
	s      *segment
	length int64
	at     int64
	void   bool // the member has no meaning
}

// errTorn ends the reading of a segment.
var errTorn = errors.New("torn")

// member reads one blob. more is false at the end of what can be kept.
func (r *scan) member(ctx context.Context) (more bool, err error) {
	start := r.at
	k, size, err := r.header()
	if errors.Is(err, errTorn) {
		return false, nil
	}
	if err != nil || padded(size) > r.length-r.at {
		return false, err
	}
	if r.void {
		r.s.add(start, r.at, size, complete)
		r.at += padded(size)
		return true, nil
	}
	sum := sha256.New()
	_, err = ctxio.Copy(sum, ctxio.Reader{Ctx: ctx, R: io.NewSectionReader(r.s.f, r.at, size)})
	if err != nil {
		return false, err
	}
	at := r.at
	r.at += padded(size)
	if digest.NewDigest(digest.SHA256, sum) != k.digest() {
		if r.w.holes[k] != nil {
			return false, nil // this has never been written
		}
		r.w.holes[k] = r.s.add(start, at, size, hole)
		return true, nil
	}
	// The bytes behind the content may be torn as well.
	if _, err := r.s.f.WriteAt(zeros[:padded(size)-size], at+size); err != nil {
		return false, r.w.written(err)
	}
	r.s.add(start, at, size, complete)
	if _, twice := r.w.blobs[k]; !twice {
		r.w.blobs[k] = place{segment: r.s.n, at: at, size: size}
	}
	r.w.event(store.Event{Kind: store.EventVerified, Blob: k.digest(), Size: size, Done: size})
	return true, nil
}

// header reads the header of a blob and compares it with the one that would be written.
func (r *scan) header() (k key, size int64, err error) {
	head, err := r.read(block)
	if err != nil {
		return k, 0, err
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
		return k, 0, errTorn // also the end of the archive
	}
	k, ok := r.w.o.Form.blobKey(h.Name)
	if r.void = strings.HasPrefix(h.Name, voidPrefix); r.void {
		ok = true
	}
	want, err := header(h.Name, h.Size)
	if err != nil || !ok || !bytes.Equal(head, want) {
		return k, 0, errTorn
	}
	return k, h.Size, nil
}

// read reads bytes of the segment. The error is errTorn if there are fewer.
func (r *scan) read(n int64) ([]byte, error) {
	if n > r.length-r.at {
		return nil, errTorn
	}
	b := make([]byte, n)
	_, err := r.s.f.ReadAt(b, r.at)
	r.at += n
	return b, err
}
