package mirror

import (
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/transfer"
)

// progress counts what is done and reports it, one event at a time.
type progress struct {
	sync.Mutex
	events func(Event)
	Event
	group group
}

// group are images of a similar size: those that are not begun are expected to be as large as the others.
type group struct {
	images, done int
	atOnce       int   // how many are copied at once
	before       int64 // the bytes of earlier groups
}

// begin begins a group.
func (p *progress) begin(images, atOnce int) {
	p.Lock()
	defer p.Unlock()
	p.group = group{images: images, atOnce: atOnce, before: p.AllBytes}
}

// add changes the sums and reports them.
func (p *progress) add(change func(*Event)) {
	p.Lock()
	defer p.Unlock()
	before := p.Images
	change(&p.Event)
	p.group.done += p.Images - before
	p.Expected = p.group.expected(p.AllBytes)
	if p.events != nil {
		p.events(p.Event)
	}
	p.Image, p.Status, p.Err = "", "", nil
}

// expected is an estimate of the bytes of images that are not begun.
func (g group) expected(all int64) int64 {
	begun := min(g.done+g.atOnce, g.images)
	if begun == 0 {
		return 0
	}
	return int64(float64(all-g.before) / float64(begun) * float64(g.images-begun))
}

// moved adds the bytes of the transfers of one image to the progress. Blobs that the target has or mounts move nothing.
type moved struct {
	mu       sync.Mutex
	progress *progress
	done     map[digest.Digest]int64 // of blobs that began
}

func (m *moved) event(e transfer.Event) {
	m.mu.Lock()
	if m.done == nil {
		m.done = map[digest.Digest]int64{}
	}
	before, began := m.done[e.Blob]
	now := before
	switch e.Kind {
	case transfer.EventBlobProgress:
		now = max(before, e.Done)
	case transfer.EventBlobDone, transfer.EventBlobReused, transfer.EventBlobMounted:
		now = e.Size
	}
	starts := e.Kind == transfer.EventBlobStart && !began
	if began || starts {
		m.done[e.Blob] = now
	}
	m.mu.Unlock()
	switch {
	case starts:
		m.progress.add(func(p *Event) { p.AllBytes += e.Size })
	case began && now > before:
		m.progress.add(func(p *Event) { p.Bytes += now - before })
	}
}
