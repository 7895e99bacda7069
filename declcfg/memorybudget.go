package declcfg

import (
	"context"
	"sync"
)

// memoryBudget limits the bytes that were read from files and are waiting to be handed over. The file that is handed
// over next never waits, so that there is no deadlock however large a piece is.
type memoryBudget struct {
	most int
	done func() bool // stops watching the context

	mu      sync.Mutex
	more    sync.Cond
	used    int
	current int // the file that is handed over next
	ended   bool
}

func newMemoryBudget(ctx context.Context, most int) *memoryBudget {
	r := &memoryBudget{most: most}
	r.more.L = &r.mu
	r.done = context.AfterFunc(ctx, r.end)
	return r
}

// reserve waits until bytes of a file fit into the budget, and counts them. It does not wait for the current file.
func (r *memoryBudget) reserve(file, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.used > 0 && r.used+bytes > r.most && file != r.current && !r.ended {
		r.more.Wait()
	}
	r.used += bytes
}

// release gives back bytes that were handed over.
func (r *memoryBudget) release(bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.used -= bytes
	r.more.Broadcast()
}

// setCurrent sets the file that is handed over next.
func (r *memoryBudget) setCurrent(file int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.current = file
	r.more.Broadcast()
}

// end releases all waiters: nothing is handed over any more.
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
