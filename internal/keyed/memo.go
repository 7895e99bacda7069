package keyed

import (
	"context"
	"sync"
)

// Memo keeps the results of calls by key. The zero value is ready to use. It is safe for concurrent use; KeepErrors is set
// before.
type Memo[K comparable, V any] struct {
	// KeepErrors keeps errors as it does values. Otherwise an error is that of the callers that wait for it, and the next
	// one calls again.
	KeepErrors bool

	mu    sync.Mutex
	calls map[K]*call[V]
}

// call is a call of which the result is known once done is closed.
type call[V any] struct {
	done  chan struct{}
	value V
	err   error
	// void tells that the context of the call ended, or that it panicked: those that wait call again.
	void bool
}

// Get returns the result of a key. Of concurrent callers one calls f, with its own context, and the others wait for the
// result, or for the end of theirs, of which the error is the cause.
func (m *Memo[K, V]) Get(ctx context.Context, key K, f func(context.Context) (V, error)) (V, error) {
	for {
		m.mu.Lock()
		c := m.calls[key]
		if c == nil {
			if m.calls == nil {
				m.calls = map[K]*call[V]{}
			}
			c = &call[V]{done: make(chan struct{}), void: true}
			m.calls[key] = c
			m.mu.Unlock()
			return m.run(ctx, key, c, f)
		}
		m.mu.Unlock()
		select {
		case <-c.done:
		default:
			select {
			case <-c.done:
			case <-ctx.Done():
				var none V
				return none, context.Cause(ctx)
			}
		}
		if !c.void {
			return c.value, c.err
		}
	}
}

// run calls f for all that wait for a call.
func (m *Memo[K, V]) run(ctx context.Context, key K, c *call[V], f func(context.Context) (V, error)) (V, error) {
	defer func() {
		if c.void || c.err != nil && !m.KeepErrors {
			m.mu.Lock()
			delete(m.calls, key)
			m.mu.Unlock()
		}
		close(c.done)
	}()
	c.value, c.err = f(ctx)
	c.void = c.err != nil && ctx.Err() != nil
	return c.value, c.err
}
