package program

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images/store"
)

// Blobs and bytes are counted once for each destination, whatever is repeated, and never run backwards.
func TestTransferCounts(t *testing.T) {
	event := func(kind store.EventKind, blob string, size, done int64) store.Event {
		return store.Event{Kind: kind, Destination: "r.example/a", Blob: digest.FromString(blob), Size: size,
			Done: done}
	}
	start := func(blob string, size int64) store.Event { return event(store.EventBlobStart, blob, size, 0) }
	part := func(blob string, size, done int64) store.Event {
		return event(store.EventBlobProgress, blob, size, done)
	}
	end := func(blob string, size int64) store.Event { return event(store.EventBlobDone, blob, size, size) }
	elsewhere := func(e store.Event) store.Event { e.Destination = "r.example/b"; return e }
	for name, c := range map[string]struct {
		events []store.Event
		want   string // done/all, bytes/all bytes, blobs under way
	}{
		"nothing":       {nil, "0/0 0/0 0"},
		"one under way": {[]store.Event{start("x", 10), part("x", 10, 4)}, "0/1 4/10 1"},
		"one done, its last part not reported": {[]store.Event{start("x", 10), part("x", 10, 4), end("x", 10)},
			"1/1 10/10 0"},
		"a retry starts again, the count does not": {[]store.Event{start("x", 10), part("x", 10, 8),
			{Kind: store.EventRetry, Attempt: 1, Err: errors.New("reset")}, start("x", 10), part("x", 10, 2)},
			"0/1 8/10 1"},
		"more than its size": {[]store.Event{start("x", 10), part("x", 10, 99)}, "0/1 10/10 1"},
		"two at once": {[]store.Event{start("x", 10), start("y", 30), part("y", 30, 15), end("x", 10)},
			"1/2 25/40 1"},
		"the same blob to two destinations": {[]store.Event{start("x", 10), elsewhere(start("x", 10)), end("x", 10)},
			"1/2 10/20 1"},
		"done twice": {[]store.Event{start("x", 10), end("x", 10), end("x", 10), part("x", 10, 5)}, "1/1 10/10 0"},
		"reused and mounted blobs are not transferred": {[]store.Event{event(store.EventBlobReused, "x", 10, 0),
			event(store.EventBlobMounted, "y", 10, 0)}, "0/0 0/0 0"},
		"an event of a blob that has not begun": {[]store.Event{part("x", 10, 5), end("x", 10)}, "0/0 0/0 0"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &transfer{Progress: cmdline.NewProgress(nil, nil),
				blobs: map[string]int64{}}
			for _, e := range c.events {
				m.Event("uploading", e)
			}
			s := m.state
			if got := fmt.Sprintf("%d/%d %d/%d %d", s.Done, s.All, s.Bytes, s.AllBytes, m.open); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// Reading and writing at once is copying, and the events may come from many goroutines.
func TestTransferOfBothDirections(t *testing.T) {
	m := &transfer{Progress: cmdline.NewProgress(nil, nil), blobs: map[string]int64{}}
	var all sync.WaitGroup
	for n := range 50 {
		what := []string{"downloading", "uploading"}[n%2]
		all.Go(func() {
			blob := digest.FromString(fmt.Sprint(n))
			for _, e := range []store.Event{
				{Kind: store.EventBlobStart, Blob: blob, Size: 100},
				{Kind: store.EventBlobProgress, Blob: blob, Size: 100, Done: 50},
				{Kind: store.EventBlobDone, Blob: blob, Size: 100, Done: 100},
			} {
				m.Event(what, e)
			}
		})
	}
	all.Wait()
	if s := m.state; s.What != "copying" || s.Done != 50 || s.All != 50 || s.Bytes != 5000 || s.AllBytes != 5000 ||
		m.open != 0 {
		t.Errorf("%+v, %d under way", s, m.open)
	}
}

// While the task is shown that blobs are moved for, they are counted and not shown.
func TestTransferWithinATask(t *testing.T) {
	p := &Program{bars: true, screen: cmdline.NewScreen(io.Discard)}
	task, moved := p.Task(), p.Moved()
	blob := store.Event{Kind: store.EventBlobStart, Blob: digest.FromString("x"), Size: 10}
	if moved.Event("reading", blob); !moved.Open() {
		t.Error("blobs are not shown where there is no task")
	}
	task.Set(cmdline.State{What: "mirroring", All: 3})
	blob.Kind, blob.Done = store.EventBlobProgress, 5
	if moved.Event("reading", blob); moved.Open() || moved.state.Bytes != 5 {
		t.Errorf("shown beside the task, or not counted: %+v", moved.state)
	}
	task.Close()
	blob.Done = 7
	if moved.Event("reading", blob); !moved.Open() {
		t.Error("blobs are not shown after the task")
	}
	blob.Kind = store.EventBlobDone
	if moved.Event("reading", blob); moved.Open() {
		t.Error("shown after the last blob")
	}
}
