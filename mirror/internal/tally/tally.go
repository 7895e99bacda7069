// Package tally counts the bytes of blobs that a mirror moves, of how many that have to be.
package tally

import (
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
)

// Tally counts the bytes of blobs for the progress: how many are moved, of how many that have to be. A blob counts from
// when the manifest of the first image with it is read. What turns out to be there, or is mounted, is taken out of
// the sum, and what is sent to several repositories is in it several times. So the sum ends as what was moved. It is
// safe for concurrent use.
type Tally struct {
	report func(bytes, all int64)

	mu    sync.Mutex
	blobs map[digest.Digest]*tallied
}

// tallied is a blob that some image has.
type tallied struct {
	size int64
	by   *Image // the image that it was copied or found for; nil if it is only expected
}

// Image is the part of one image in a tally.
type Image struct {
	tally    *Tally
	expected []digest.Digest         // the blobs that this image was the first to have
	open     map[digest.Digest]int64 // blobs that are being copied, with their bytes so far
	begun    bool
}

// New returns a tally that calls report with what has been moved since the last call, and by how much the sum has
// changed that is to be moved.
func New(report func(bytes, all int64)) *Tally { return &Tally{report: report} }

// Image returns the part of an image.
func (t *Tally) Image() *Image { return &Image{tally: t} }

// Expect adds blobs that may have to be moved. It comes too late for an image that is copied already, whose blobs are
// counted as they begin.
func (m *Image) Expect(blobs map[digest.Digest]int64) {
	t := m.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	if m.begun {
		return
	}
	var more int64
	for d, size := range blobs {
		if t.blobs[d] == nil {
			t.add(d, &tallied{size: size})
			m.expected = append(m.expected, d)
			more += size
		}
	}
	t.changed(0, more)
}

// Event counts a step of a blob of this image.
func (m *Image) Event(e store.Event) {
	t := m.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	b := t.blobs[e.Blob]
	before, moves := m.open[e.Blob]
	switch e.Kind {
	case store.EventBlobStart:
		all := -e.Done // an upload that an earlier run began goes on
		if b == nil || b.by != nil {
			all += e.Size
		}
		if b == nil {
			b = &tallied{size: e.Size}
			t.add(e.Blob, b)
		}
		if m.open == nil {
			m.open = map[digest.Digest]int64{}
		}
		m.open[e.Blob], b.by = e.Done, m
		t.changed(0, all)
	case store.EventBlobProgress:
		if moves && e.Done > before {
			m.open[e.Blob] = e.Done
			t.changed(e.Done-before, 0)
		}
	case store.EventBlobDone:
		if moves {
			delete(m.open, e.Blob)
			t.changed(e.Size-before, 0)
		}
	case store.EventBlobReused, store.EventBlobMounted:
		switch {
		case moves:
			delete(m.open, e.Blob)
			t.changed(0, before-e.Size)
		case b == nil:
			t.add(e.Blob, &tallied{size: e.Size, by: m})
		case b.by == nil:
			b.by = m
			t.changed(0, -b.size)
		}
	}
}

// Begin says that the image is copied from now on.
func (m *Image) Begin() {
	m.tally.mu.Lock()
	defer m.tally.mu.Unlock()
	m.begun = true
}

// End takes out what was not moved for the image after all.
func (m *Image) End() {
	t := m.tally
	t.mu.Lock()
	defer t.mu.Unlock()
	m.begun = true
	var less int64
	for d, done := range m.open {
		less += t.blobs[d].size - done
	}
	for _, d := range m.expected {
		if b := t.blobs[d]; b.by == nil {
			less += b.size
			delete(t.blobs, d)
		}
	}
	m.open, m.expected = nil, nil
	t.changed(0, -less)
}

func (t *Tally) add(d digest.Digest, b *tallied) {
	if t.blobs == nil {
		t.blobs = map[digest.Digest]*tallied{}
	}
	t.blobs[d] = b
}

// changed reports what has changed.
func (t *Tally) changed(bytes, all int64) {
	if bytes != 0 || all != 0 {
		t.report(bytes, all)
	}
}
