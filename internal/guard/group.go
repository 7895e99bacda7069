package guard

import (
	"context"
	"sync"
)

// Group is golang.org/x/sync/errgroup with panics as errors: functions that run concurrently, of which the first error is
// returned, and ends the others. The zero value has no limit and no context.
type Group struct {
	running sync.WaitGroup
	slots   chan struct{}
	first   sync.Once
	err     error
	cancel  context.CancelCauseFunc
}

// WithContext returns a group and a context that ends with the first error, which is its cause, or when Wait returns.
func WithContext(ctx context.Context) (*Group, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	return &Group{cancel: cancel}, ctx
}

// SetLimit limits how many functions run at once, to at least one. It is called before Go.
func (g *Group) SetLimit(n int) { g.slots = make(chan struct{}, max(n, 1)) }

// Go runs a function in a goroutine, and waits for a free one if there is a limit.
func (g *Group) Go(f func() error) {
	if g.slots != nil {
		g.slots <- struct{}{}
	}
	g.start(f)
}

// start runs a function that has a slot.
func (g *Group) start(f func() error) {
	g.running.Go(func() {
		defer func() {
			if g.slots != nil {
				<-g.slots
			}
		}()
		err := Call(f)
		if err == nil {
			return
		}
		g.first.Do(func() {
			g.err = err
			if g.cancel != nil {
				g.cancel(err)
			}
		})
	})
}

// Wait waits for all functions and returns the first error.
func (g *Group) Wait() error {
	g.running.Wait()
	if g.cancel != nil {
		g.cancel(g.err)
	}
	return g.err
}
