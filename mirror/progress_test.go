package mirror

import (
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/transfer"
)

// Images that are not begun are expected to be as large as those that are: of 100 images four are copied at once.
func TestProgressExpectsTheRest(t *testing.T) {
	var last Event
	p := progress{events: func(e Event) { last = e }}
	p.begin(100, 4)
	p.add(func(e *Event) { e.AllBytes += 4000 })
	if last.Expected != 96000 {
		t.Errorf("four of 100 begun: %d", last.Expected)
	}
	for range 96 {
		p.add(func(e *Event) { e.Images++; e.AllBytes += 1000 })
	}
	if last.Expected != 0 {
		t.Errorf("all begun: %d", last.Expected)
	}
	p.begin(10, 4)
	p.add(func(e *Event) { e.AllBytes += 40 })
	if last.Expected != 60 {
		t.Errorf("the next group, of smaller images: %d", last.Expected)
	}
}

// Only blobs that are sent count, once, whatever is begun again; not those that the target has or mounts.
func TestProgressCountsWhatMoves(t *testing.T) {
	var p progress
	m := &moved{progress: &p}
	sent, mounted := digest.FromString("sent"), digest.FromString("mounted")
	for _, e := range []transfer.Event{
		{Kind: transfer.EventBlobMounted, Blob: mounted, Size: 1000},
		{Kind: transfer.EventBlobStart, Blob: sent, Size: 100},
		{Kind: transfer.EventBlobProgress, Blob: sent, Size: 100, Done: 60},
		{Kind: transfer.EventBlobStart, Blob: sent, Size: 100},
		{Kind: transfer.EventBlobProgress, Blob: sent, Size: 100, Done: 10},
	} {
		m.event(e)
	}
	if p.Bytes != 60 || p.AllBytes != 100 {
		t.Errorf("%d of %d bytes, begun again", p.Bytes, p.AllBytes)
	}
	m.event(transfer.Event{Kind: transfer.EventBlobDone, Blob: sent, Size: 100})
	if p.Bytes != 100 || p.AllBytes != 100 {
		t.Errorf("%d of %d bytes at the end", p.Bytes, p.AllBytes)
	}
}
