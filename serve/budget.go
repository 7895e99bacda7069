package serve

import (
	"context"
	"math/bits"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
)

// budget bounds the bytes of the answers that are being sent. A buffer that the transport keeps for a slow client stays
// counted until the transport gives it back, which it does when the bytes are sent or the stream or connection ends.
type budget struct {
	limit int
	wait  time.Duration // how long a call waits for its share

	mu      sync.Mutex
	used    int
	waiters []*waiter // in order of arrival

	// Powers of two waste less than the few sizes of the transport's own pool, in which 33 KiB take 1 MiB.
	pools [maxClass + 1]sync.Pool
}

// maxClass is the largest power of two of which buffers are kept for reuse: 4 MiB.
const maxClass = 22

type waiter struct {
	size  int
	ready chan struct{} // closed, under the lock, when size is counted
}

// get returns a buffer of size bytes and the pool to put it back to.
func (b *budget) get(ctx context.Context, size int) (*[]byte, mem.BufferPool, error) {
	if mem.IsBelowBufferPoolingThreshold(size) {
		// The transport does not give such small buffers back.
		buf := make([]byte, size)
		return &buf, mem.NopBufferPool{}, nil
	}
	s := &share{budget: b, class: bits.Len(uint(size - 1)), size: size}
	if s.class <= maxClass {
		s.size = 1 << s.class
	}
	if err := b.acquire(ctx, s.size); err != nil {
		return nil, nil, err
	}
	buf := s.Get(s.size)
	*buf = (*buf)[:size]
	return buf, s, nil
}

// acquire counts size bytes, waiting if need be. An answer that is larger than the whole budget gets all of it.
func (b *budget) acquire(ctx context.Context, size int) error {
	size = min(size, b.limit)
	b.mu.Lock()
	if len(b.waiters) == 0 && b.used+size <= b.limit {
		b.used += size
		b.mu.Unlock()
		return nil
	}
	w := &waiter{size: size, ready: make(chan struct{})}
	b.waiters = append(b.waiters, w)
	b.mu.Unlock()
	timer := time.NewTimer(b.wait)
	defer timer.Stop()
	var err error
	select {
	case <-w.ready:
		return nil
	case <-ctx.Done():
		err = status.FromContextError(ctx.Err()).Err()
	case <-timer.C:
		err = status.Error(codes.ResourceExhausted, "the server's memory for answers is taken by slow clients")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i := range b.waiters {
		if b.waiters[i] == w {
			b.waiters = append(b.waiters[:i], b.waiters[i+1:]...)
			b.wake()
			return err
		}
	}
	// It was counted in the meantime.
	b.used -= size
	b.wake()
	return err
}

func (b *budget) release(size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= min(size, b.limit)
	b.wake()
}

// wake lets the first waiters go for whom there is room.
func (b *budget) wake() {
	for len(b.waiters) > 0 && b.used+b.waiters[0].size <= b.limit {
		b.used += b.waiters[0].size
		close(b.waiters[0].ready)
		b.waiters = b.waiters[1:]
	}
}

// share is the pool of one buffer: what comes back to it is no longer counted.
type share struct {
	budget *budget
	class  int // the buffer's size is 2^class
	size   int // counted
}

func (s *share) Get(n int) *[]byte {
	if s.class <= maxClass {
		if buf, ok := s.budget.pools[s.class].Get().(*[]byte); ok {
			return buf
		}
	}
	buf := make([]byte, n)
	return &buf
}

func (s *share) Put(buf *[]byte) {
	if s.class <= maxClass {
		*buf = (*buf)[:cap(*buf)]
		s.budget.pools[s.class].Put(buf)
	}
	s.budget.release(s.size)
}
