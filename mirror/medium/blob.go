package medium

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/referrers"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/transfer"
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

// writeBlob writes a blob unless it is there or left out. Of several callers with one blob, one writes.
func (w *Writer) writeBlob(ctx context.Context, by *WriterRepository, d v1.Descriptor, open referrers.OpenAt) error {
	k, err := keyOf(d.Digest)
	if err != nil {
		return err
	}
	if d.Size < 0 {
		return fmt.Errorf("%w: %s has the size %d", fault.ErrInvalid, d.Digest, d.Size)
	}
	if w.leave(k, by, d) {
		return nil
	}
	for {
		w.mu.Lock()
		p, has := w.blobs[k]
		if has && p.by == nil { // of an interrupted run
			p.by = by
			w.blobs[k] = p
		}
		other, busy := w.writing[k]
		if !has && !busy {
			w.writing[k] = make(chan struct{})
		}
		w.mu.Unlock()
		switch {
		case has && p.size != d.Size:
			return fmt.Errorf("%s: %w: size is %d and not %d", d.Digest, fault.ErrIntegrity, p.size, d.Size)
		case has:
			w.event(Event{Kind: transfer.EventBlobReused, Blob: d.Digest, Size: d.Size})
			return nil
		case !busy:
			return w.writeNew(ctx, k, by, d, open)
		}
		select {
		case <-other: // written, or it is the turn of this caller
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// leave records a blob that the destination has. One that is in the archive stays there.
func (w *Writer) leave(k key, by *WriterRepository, d v1.Descriptor) bool {
	if w.o.Have == nil || !w.o.Have(d.Digest) {
		return false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, has := w.blobs[k]; has {
		return false
	}
	if w.leftOut[k] == nil {
		w.leftOut[k] = &absent{by: by, size: d.Size}
	}
	return true
}

func (w *Writer) writeNew(ctx context.Context, k key, by *WriterRepository, d v1.Descriptor,
	open referrers.OpenAt) error {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		close(w.writing[k])
		delete(w.writing, k)
	}()
	w.event(Event{Kind: transfer.EventBlobStart, Blob: d.Digest, Size: d.Size})
	var err error
	if d.Size <= smallBlob {
		err = w.writeSmall(ctx, k, by, d, open)
	} else {
		err = w.writeLarge(ctx, k, by, d, open)
	}
	if err == nil {
		w.event(Event{Kind: transfer.EventBlobDone, Blob: d.Digest, Size: d.Size, Done: d.Size})
	}
	return err
}

// writeSmall fetches a blob into memory, while others are written, and writes it.
func (w *Writer) writeSmall(ctx context.Context, k key, by *WriterRepository, d v1.Descriptor,
	open referrers.OpenAt) error {
	weight := d.Size + block
	if err := w.small.Acquire(ctx, weight); err != nil {
		return context.Cause(ctx)
	}
	defer w.small.Release(weight)
	content := bytes.NewBuffer(make([]byte, 0, d.Size+bytes.MinRead))
	if err := fetch(ctx, d, open, content); err != nil {
		return err
	}
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	return w.writeMember(w.o.Form.blobName(k), d.Size, &ownBlob{k, by}, func(to io.Writer) error {
		_, err := to.Write(content.Bytes())
		return err
	})
}

// writeLarge streams a blob into the segment.
func (w *Writer) writeLarge(ctx context.Context, k key, by *WriterRepository, d v1.Descriptor,
	open referrers.OpenAt) error {
	if err := w.acquire(ctx); err != nil {
		return err
	}
	defer w.release()
	return w.writeMember(w.o.Form.blobName(k), d.Size, &ownBlob{k, by}, func(to io.Writer) error {
		return fetch(ctx, d, open, progress{w, d, new(int64), to})
	})
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
	p.w.event(Event{Kind: transfer.EventBlobProgress, Blob: p.d.Digest, Size: p.d.Size, Done: *p.done})
	return n, err
}

// ownBlob is the blob that a member is, and the repository that wrote it.
type ownBlob struct {
	k  key
	by *WriterRepository
}

// writeMember writes a member whole or not at all, and where the content of a blob is. The caller has the turn.
func (w *Writer) writeMember(name string, size int64, blob *ownBlob, content func(io.Writer) error) error {
	head, err := header(name, size)
	if err != nil {
		return err
	}
	if err := w.room(name, size, head); err != nil {
		return err
	}
	s := w.cur
	m, err := s.mark()
	if err != nil {
		return err
	}
	_, err = s.Write(head)
	p := place{segment: s.n, at: s.size, size: size}
	if err == nil {
		err = content(s)
	}
	if err == nil && s.size-p.at != size {
		err = fmt.Errorf("%s: %w: size is %d and not %d", name, fault.ErrIntegrity, s.size-p.at, size)
	}
	if err == nil {
		err = s.pad()
	}
	if err != nil {
		if undone := s.rollback(m); undone != nil {
			err = errors.Join(err, undone)
			w.ended = true // what would follow would be behind a torn member
		}
		return w.written(err)
	}
	s.members++
	if blob != nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.by = blob.by
		w.blobs[blob.k] = p
		delete(w.leftOut, blob.k)
	}
	return nil
}
