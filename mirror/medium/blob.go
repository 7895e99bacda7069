package medium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/verify"
)

const (
	// smallBlob is the size up to which blobs are fetched into memory, beside the one that is written.
	smallBlob = 1 << 20
	// smallBytes is how many bytes of blobs are in memory at a time.
	smallBytes = 16 << 20
	// fetchBuffer is how much of a blob is read at once.
	fetchBuffer = 256 << 10
	// attempts is how often a blob is opened again after it broke off and nothing more of it came.
	attempts = 3
)

// openAt opens a blob at an offset.
type openAt = func(ctx context.Context, from int64) (io.ReadCloser, error)

// writeBlob writes a blob unless it is there or left out. Of several callers with one blob, one writes.
func (w *Writer) writeBlob(ctx context.Context, by *writerRepository, d v1.Descriptor, open openAt) error {
	k, err := keyOf(d.Digest)
	if err != nil {
		return err
	}
	if d.Size < 0 {
		return fmt.Errorf("%w: %s has the size %d", fault.ErrInvalid, d.Digest, d.Size)
	}
	if left, err := w.leave(k, by, d); left || err != nil {
		return err
	}
	if err := w.roomFor(); err != nil {
		return err
	}
	unlock, err := w.writing.Lock(ctx, k)
	if err != nil {
		return err
	}
	defer unlock()
	w.mu.Lock()
	p, has := w.blobs[k]
	if has && p.by == nil { // of an interrupted run
		p.by = by
		w.blobs[k] = p
	}
	w.mu.Unlock()
	if !has {
		return w.writeNew(ctx, k, by, d, open)
	}
	if err := verify.Size(d, p.size); err != nil {
		return err
	}
	w.event(store.Event{Kind: store.EventBlobReused, Blob: d.Digest, Size: d.Size})
	return nil
}

// roomFor returns an error if there are as many blobs or repositories as readers take.
func (w *Writer) roomFor() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	blobs := len(w.blobs) + w.writing.Len()
	if w.kept != nil {
		blobs += w.kept.blobs.length
	}
	return errors.Join(full(blobs, maxIndexed, "blobs"),
		full(len(w.repos), maxRepositories, "repositories"))
}

// leave leaves a blob out if the destination, or the archive that is kept beside the new one, has it, and reports
// whether it does. A blob that is in the archive already is not left out.
func (w *Writer) leave(k key, by *writerRepository, d v1.Descriptor) (left bool, err error) {
	has := w.o.Have != nil && w.o.Have(d.Digest)
	if !has && !(w.o.Beside && w.kept != nil && w.kept.Has(d.Digest)) {
		return false, nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, has := w.blobs[k]; has {
		return false, nil
	}
	if w.leftOut[k] == nil {
		w.leftOut[k] = &absent{by: by, size: d.Size}
	}
	err = verify.Size(d, w.leftOut[k].size)
	return err == nil, err
}

func (w *Writer) writeNew(ctx context.Context, k key, by *writerRepository, d v1.Descriptor,
	open openAt) error {
	w.event(store.Event{Kind: store.EventBlobStart, Blob: d.Digest, Size: d.Size})
	var err error
	if d.Size <= smallBlob {
		err = w.writeSmall(ctx, k, by, d, open)
	} else {
		err = w.writeLarge(ctx, k, by, d, open)
	}
	if err == nil {
		w.event(store.Event{Kind: store.EventBlobDone, Blob: d.Digest, Size: d.Size, Done: d.Size})
	}
	return err
}

// writeSmall fetches a blob into memory, while others are written, and writes it.
func (w *Writer) writeSmall(ctx context.Context, k key, by *writerRepository, d v1.Descriptor,
	open openAt) error {
	weight := d.Size + block
	if err := w.small.Acquire(ctx, weight); err != nil {
		return context.Cause(ctx)
	}
	defer w.small.Release(weight)
	content := bytes.NewBuffer(make([]byte, 0, d.Size+bytes.MinRead))
	if err := fetch(ctx, d, open, content); err != nil {
		return err
	}
	return w.writeBlobMember(ctx, k, by, d.Size, func(to io.Writer) error {
		_, err := to.Write(content.Bytes())
		return err
	})
}

// writeLarge streams a blob into the segment, beside others. The blob is opened before space is reserved for it, so
// that one that cannot be read takes no space.
func (w *Writer) writeLarge(ctx context.Context, k key, by *writerRepository, d v1.Descriptor,
	open openAt) error {
	if err := w.tooLarge(w.o.Form.blobName(k), d.Size); err != nil {
		return err
	}
	first, err := open(ctx, 0)
	if err != nil {
		return err
	}
	opened := func(ctx context.Context, from int64) (io.ReadCloser, error) {
		if r := first; r != nil {
			first = nil
			return r, nil
		}
		return open(ctx, from)
	}
	err = w.writeBlobMember(ctx, k, by, d.Size, func(to io.Writer) error {
		return fetch(ctx, d, opened, progress{w, d, new(int64), to})
	})
	if first != nil {
		err = errors.Join(err, first.Close())
	}
	return err
}

// writeBlobMember gives a blob a place and has it filled.
func (w *Writer) writeBlobMember(ctx context.Context, k key, by *writerRepository, size int64,
	content func(io.Writer) error) error {
	if err := w.acquire(ctx); err != nil {
		return err
	}
	r, err := w.placeFor(k, size)
	w.release()
	if err != nil {
		return err
	}
	if err := w.fill(r, content); err != nil {
		// The place must be given up whatever became of the context.
		return errors.Join(err, w.giveUp(k, r))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.blobs[k] = place{r.s.n, r.at, size, by}
	delete(w.leftOut, k)
	return nil
}

// placeFor returns the place for a blob: that which an earlier attempt had, or a new one. The caller holds w.turn.
func (w *Writer) placeFor(k key, size int64) (*region, error) {
	if r := w.holes[k]; r != nil && r.size == size {
		delete(w.holes, k)
		r.s.mu.Lock()
		defer r.s.mu.Unlock()
		r.state = filling
		return r, nil
	}
	return w.reserve(w.o.Form.blobName(k), size)
}

// reserve gives a member a place. The caller holds w.turn.
func (w *Writer) reserve(name string, size int64) (*region, error) {
	head, err := header(name, size)
	if err != nil {
		return nil, err
	}
	if err := w.room(name, size, head); err != nil {
		return nil, err
	}
	w.members++
	if err := full(w.members, maxMembers, "members"); err != nil {
		return nil, err
	}
	r, err := w.current().reserve(head, size)
	return r, w.written(err)
}

// fill writes the content of a member, of exactly its size.
func (w *Writer) fill(r *region, content func(io.Writer) error) error {
	err := content(r)
	if err == nil && r.done != r.size {
		err = fmt.Errorf("%w: size is %d and not %d", fault.ErrIntegrity, r.done, r.size)
	}
	if err == nil {
		err = r.finish()
	}
	return w.written(err)
}

// giveUp takes a place back.
func (w *Writer) giveUp(k key, r *region) error {
	w.turn <- struct{}{}
	defer w.release()
	isHole, err := r.fail()
	if err != nil {
		w.ended = true // nothing can follow a torn member
	}
	if isHole {
		w.holes[k] = r
	}
	return err
}

// progress tells how much of a blob is written.
type progress struct {
	w    *Writer
	d    v1.Descriptor
	done *int64
	to   io.Writer
}

func (p progress) Write(b []byte) (int, error) {
	n, err := p.to.Write(b)
	*p.done += int64(n)
	p.w.event(store.Event{Kind: store.EventBlobProgress, Blob: p.d.Digest, Size: p.d.Size, Done: *p.done})
	return n, err
}

// writeMember writes a member that is no blob, whole or not at all. The caller holds w.turn.
func (w *Writer) writeMember(name string, size int64, content func(io.Writer) error) error {
	r, err := w.reserve(name, size)
	if err != nil {
		return err
	}
	if err := w.fill(r, content); err != nil {
		_, failed := r.fail() // the region is the last one
		w.ended = w.ended || failed != nil
		return errors.Join(fmt.Errorf("%s: %w", name, err), failed)
	}
	return nil
}
