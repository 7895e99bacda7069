// Package keyed orders concurrent callers by a key: one at a time for a key with [Locks], or one for all with [Memo].
//
// Both let go a caller that waits when its context ends, and what one caller meets, the end of its context or a panic,
// is no answer for the others. golang.org/x/sync/singleflight and [sync.Once] differ in this: hack/imports refuses the
// first.
package keyed

import (
	"context"
	"sync"
)

// Locks are locks with keys, which take memory while they are held. The zero value is ready to use. They are safe for
// concurrent use.
type Locks[K comparable] struct {
	mu   sync.Mutex
	held map[K]chan struct{} // closed by unlock
}

// Lock waits until no other caller has the lock of a key. The caller calls unlock once. If the context ends meanwhile,
// the error is its cause. A lock that is free is taken in any case.
func (l *Locks[K]) Lock(ctx context.Context, key K) (unlock func(), err error) {
	mine := make(chan struct{})
	for {
		l.mu.Lock()
		other := l.held[key]
		if other == nil {
			if l.held == nil {
				l.held = map[K]chan struct{}{}
			}
			l.held[key] = mine
		}
		l.mu.Unlock()
		if other == nil {
			break
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return func() {
		l.mu.Lock()
		delete(l.held, key)
		l.mu.Unlock()
		close(mine)
	}, nil
}

// Len is how many locks are held.
func (l *Locks[K]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
