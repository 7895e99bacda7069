package serve

import (
	"container/list"
	"context"
	"math/bits"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// answer is a message in wire form. Its buffers are passed to the transport without copying.
type answer struct{ data mem.BufferSlice }

// small returns an answer of a few bytes.
func small(b []byte) answer { return answer{mem.BufferSlice{mem.SliceBuffer(b)}} }

// codec passes answers through and leaves all other messages (requests, health, reflection) to the standard codec.
type codec struct{ encoding.CodecV2 }

func newCodec() codec { return codec{encoding.GetCodecV2(proto.Name)} }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if a, ok := v.(answer); ok {
		return a.data, nil
	}
	return c.CodecV2.Marshal(v)
}

// reader reads answers into memory that counts against the budget until the transport has sent it: however many clients
// ask and however slowly they read, no more than the budget is used.
type reader struct {
	budget *budget
}

// read returns one or more records of a package as one buffer, followed by tail.
func (r reader) read(ctx context.Context, p *Package, tail []byte, records ...record) (answer, error) {
	size := len(tail)
	for _, rec := range records {
		size += int(rec.length)
	}
	buf, pool, err := r.budget.allocate(ctx, size)
	if err != nil {
		return answer{}, err
	}
	at := 0
	for _, rec := range records {
		if err := p.read((*buf)[at:at+int(rec.length)], rec); err != nil {
			pool.Put(buf)
			return answer{}, readError(ctx, err)
		}
		at += int(rec.length)
	}
	copy((*buf)[at:], tail)
	return answer{mem.BufferSlice{mem.NewBuffer(buf, pool)}}, nil
}

// readError returns the status of a call for which reading failed.
func readError(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return status.FromContextError(ctx.Err()).Err()
	}
	return status.Error(codes.DataLoss, err.Error())
}

// budget limits the bytes of the answers being sent. A buffer that the transport holds for a slow client counts until
// the transport returns it, when the bytes are sent or the stream or connection ends.
//
// One connection gets at most a quarter of the budget, or one answer if that is larger: a client that does not read
// blocks only itself.
type budget struct {
	limit int
	wait  time.Duration // how long a call waits for its share

	mu      sync.Mutex
	used    int
	clients map[string]int // bytes by connection, without zeros
	waiters list.List      // of *waiter, in order of arrival

	// Powers of two waste less than the few sizes of the transport's own pool, in which 33 KiB take 1 MiB.
	pools [maxClass + 1]sync.Pool
}

// maxClass is the largest power of two of which buffers are reused: 4 MiB.
const maxClass = 22

type waiter struct {
	size   int
	client string
	ready  chan struct{} // closed, under the lock, when size is counted
}

// clientOf returns an identifier of a call's connection.
func clientOf(ctx context.Context) string {
	if p, ok := peer.FromContext(ctx); ok && p.Addr != nil {
		return p.Addr.String()
	}
	return ""
}

// fits reports whether size more bytes fit for a client. The caller holds the lock.
func (b *budget) fits(client string, size int) bool {
	mine := b.clients[client]
	return b.used+size <= b.limit && (mine == 0 || mine+size <= b.limit/4)
}

func (b *budget) count(client string, size int) {
	b.used += size
	if b.clients == nil {
		b.clients = map[string]int{}
	}
	if b.clients[client] += size; b.clients[client] == 0 {
		delete(b.clients, client)
	}
}

// taken returns the counted bytes.
func (b *budget) taken() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.used
}

// allocate returns a buffer of size bytes and the pool that it must be returned to.
func (b *budget) allocate(ctx context.Context, size int) (*[]byte, mem.BufferPool, error) {
	if mem.IsBelowBufferPoolingThreshold(size) {
		// The transport does not return such small buffers.
		buf := make([]byte, size)
		return &buf, mem.NopBufferPool{}, nil
	}
	s := &share{budget: b, client: clientOf(ctx), class: bits.Len(uint(size - 1)), size: size}
	if s.class <= maxClass {
		s.size = 1 << s.class
	}
	if err := b.acquire(ctx, s.client, s.size); err != nil {
		return nil, nil, err
	}
	buf := s.Get(s.size)
	*buf = (*buf)[:size]
	return buf, s, nil
}

// acquire counts size bytes and waits if necessary. An answer larger than the whole budget gets all of it.
func (b *budget) acquire(ctx context.Context, client string, size int) error {
	w := &waiter{size: min(size, b.limit), client: client, ready: make(chan struct{})}
	b.mu.Lock()
	place := b.waiters.PushBack(w)
	b.admitWaiters()
	b.mu.Unlock()
	timer := time.NewTimer(b.wait)
	defer timer.Stop()
	var err error
	select {
	case <-w.ready:
		return nil
	default:
	}
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
	select {
	case <-w.ready:
	default:
		b.waiters.Remove(place)
		b.admitWaiters()
		return err
	}
	// Another call has admitted this one at the moment in which its context ended: give the bytes back.
	b.count(client, -w.size)
	b.admitWaiters()
	return err
}

func (b *budget) release(client string, size int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count(client, -min(size, b.limit))
	b.admitWaiters()
}

// admitWaiters admits waiters in order of arrival as far as they fit. No waiter overtakes one that waits for other
// connections' bytes; one that waits for bytes of its own connection is skipped. The caller holds the lock.
func (b *budget) admitWaiters() {
	for e := b.waiters.Front(); e != nil; {
		w, here := e.Value.(*waiter), e
		e = e.Next()
		switch {
		case b.fits(w.client, w.size):
			b.count(w.client, w.size)
			b.waiters.Remove(here)
			close(w.ready)
		case b.used+w.size > b.limit:
			return
		}
	}
}

// share is the pool of one buffer: returning the buffer ends its count.
type share struct {
	budget *budget
	client string
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
	s.budget.release(s.client, s.size)
}
