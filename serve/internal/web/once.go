package web

import (
	"context"
	"sync"

	"github.com/operator-bindery/bindery/internal/guard"
)

// once is something that is made from a catalog for the first request that needs it. It is safe for concurrent use.
type once[T any] struct {
	mu    sync.Mutex
	begun bool
	done  chan struct{}
	value T
	err   error
}

// get returns it. The first call starts making it, which goes on when that client leaves. The caller has acquired c.
func (o *once[T]) get(ctx context.Context, c *Content, build func() (T, error)) (T, error) {
	var none T
	o.mu.Lock()
	if !o.begun {
		if !c.acquire() {
			o.mu.Unlock()
			return build() // the catalog has been replaced, and its last requests are being answered
		}
		o.begun, o.done = true, make(chan struct{})
		go func() {
			defer c.release()
			defer close(o.done)
			defer guard.Recover(&o.err)
			o.value, o.err = build()
		}()
	}
	o.mu.Unlock()
	select {
	case <-o.done:
		return o.value, o.err
	case <-ctx.Done():
		return none, context.Cause(ctx)
	}
}
