package declcfg

import (
	"context"
	"sync"
)

// room bounds the bytes of what was read of files and waits for its turn. The file whose turn it is never waits, so that
// there is no waiting in a circle, however large one piece is.
type room struct {
	most int
	done func() bool // drops the watch of the context

	mu      sync.Mutex
	more    sync.Cond
	used    int
	current int // the file whose turn it is
	ended   bool
}

func newRoom(ctx context.Context, most int) *room {
	r := &room{most: most}
	r.more.L = &r.mu
	r.done = context.AfterFunc(ctx, r.end)
	return r
}

// take counts bytes of a file, when there is room for them or when it is the file's turn.
func (r *room) take(file, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.used > 0 && r.used+bytes > r.most && file != r.current && !r.ended {
		r.more.Wait()
	}
	r.used += bytes
}

// give says that bytes were handed over.
func (r *room) give(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= bytes
	r.more.Broadcast()
}

// first says whose turn it is.
func (r *room) first(file int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = file
	r.more.Broadcast()
}

// end lets everybody go: nothing is handed over any more.
func (r *room) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.more.Broadcast()
}

func (r *room) stop() {
	r.done()
	r.end()
}
