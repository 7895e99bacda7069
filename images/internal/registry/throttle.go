package registry

import (
	"context"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/internal/webclient"
)

// Throttle limits the requests and the bytes of all clients that have it. It is safe for concurrent use; nil limits
// nothing.
type Throttle struct {
	perHost int
	rate    int64 // bytes per second; 0 for no limit

	mu    sync.Mutex
	hosts map[string]chan struct{}
	next  time.Time // when the bytes that were taken so far have passed at the rate
}

// NewThrottle returns a throttle of that many requests at once to each host, and of that many bytes per second in all,
// received and sent. Zero is no limit.
func NewThrottle(perHost int, bandwidth int64) *Throttle {
	return &Throttle{perHost: max(perHost, 0), rate: max(bandwidth, 0), hosts: map[string]chan struct{}{}}
}

// heldKey is the key of a context in the course of a request to a host.
type heldKey struct {
	t    *Throttle
	host string
}

// enter waits until a request to a host may be sent. The request has its share until release is called, which may be
// called again. A request that is sent in the course of another one to the same host, as when an upload reads a blob
// there, is part of it: it would wait for itself.
//
// Two uploads that read from each other's destinations can wait for each other, as no copy does.
func (t *Throttle) enter(ctx context.Context, host string) (_ context.Context, release func(), err error) {
	key := heldKey{t, host}
	if t == nil || t.perHost == 0 || ctx.Value(key) != nil {
		return ctx, func() {}, nil
	}
	t.mu.Lock()
	slots := t.hosts[host]
	if slots == nil {
		slots = make(chan struct{}, t.perHost)
		t.hosts[host] = slots
	}
	t.mu.Unlock()
	select {
	case slots <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, context.Cause(ctx)
	}
	return context.WithValue(ctx, key, true), sync.OnceFunc(func() { <-slots }), nil
}

// cut shortens a buffer, so that the pauses are short.
func (t *Throttle) cut(p []byte) []byte {
	if t == nil || t.rate == 0 {
		return p
	}
	return p[:min(int64(len(p)), max(t.rate/16, 512))]
}

// wait waits as long as that many bytes take, or until the context ends.
func (t *Throttle) wait(ctx context.Context, n int) {
	if t == nil || t.rate == 0 || n <= 0 {
		return
	}
	t.mu.Lock()
	now := time.Now()
	if t.next.Before(now) {
		t.next = now
	}
	wait := t.next.Sub(now)
	t.next = t.next.Add(time.Duration(float64(n) / float64(t.rate) * float64(time.Second)))
	t.mu.Unlock()
	if wait > 0 {
		_ = webclient.Sleep(ctx, wait)
	}
}
