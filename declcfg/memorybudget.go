package declcfg

import (
	"context"
	"sync"
)

// memoryBudget bounds the bytes of what was read of files and waits for its turn. The file whose turn it is never waits, so that
// there is no waiting in a circle, however large one piece is.
type memoryBudget struct {
	most int
	done func() bool // drops the watch of the context

	mu      sync.Mutex
	more    sync.Cond
	used    int
	current int // the file whose turn it is
	ended   bool
}

func newMemoryBudget(ctx context.Context, most int) *memoryBudget {
	r := &memoryBudget{most: most}
	r.more.L = &r.mu
	r.done = context.AfterFunc(ctx, r.end)
	return r
}

// take counts bytes of a file, when there is room for them or when it is the file's turn.
func (r *memoryBudget) take(file, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.used > 0 && r.used+bytes > r.most && file != r.current && !r.ended {
		r.more.Wait()
	}
	r.used += bytes
}

// give says that bytes were handed over.
func (r *memoryBudget) give(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= bytes
	r.more.Broadcast()
}

// first says whose turn it is.
func (r *memoryBudget) first(file int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = file
	r.more.Broadcast()
}

// end lets everybody go: nothing is handed over any more.
func (r *memoryBudget) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	r.more.Broadcast()
}

func (r *memoryBudget) stop() {
	r.done()
	r.end()
}
