package guard

import (
	"context"
	"iter"
	"sync/atomic"
)

// Each calls f for each item with its index, concurrently for up to jobs items (at least one), and waits for the calls.
// The first error or panic is returned, as by [Group.Wait], and ends the context that f gets. After it, and after the
// end of ctx, no more calls begin. If the end of ctx leaves items out and no call fails, the error is the cause of ctx.
func Each[T any](ctx context.Context, jobs int, all []T, f func(ctx context.Context, n int, one T) error) error {
	indexes := func(yield func(int) bool) {
		for n := range all {
			if !yield(n) {
				return
			}
		}
	}
	return EachOf(ctx, jobs, indexes, func(ctx context.Context, n int) error { return f(ctx, n, all[n]) })
}

// EachOf is [Each] for items that need not be in memory together: one is taken when the call before it has begun.
func EachOf[T any](ctx context.Context, jobs int, all iter.Seq[T], f func(ctx context.Context, one T) error) error {
	g, gctx := WithContext(ctx)
	g.SetLimit(jobs)
	left := false
	for one := range all {
		g.slots <- struct{}{}
		if left = gctx.Err() != nil; left {
			break
		}
		g.start(func() error { return f(gctx, one) })
	}
	if err := g.Wait(); err != nil || !left {
		return err
	}
	return context.Cause(ctx)
}

// TryEach calls f for each item as [Each] does, but does not end with the first error: errs are the errors and panics, by
// the index of the item. After most errors (0 for any number), and after the end of ctx, no more calls begin, and those
// that run go on: the caller looks at ctx.
func TryEach[T any](ctx context.Context, jobs, most int, all []T,
	f func(ctx context.Context, n int, one T) error) (errs []error) {
	errs = make([]error, len(all))
	trying, stop := context.WithCancel(ctx)
	defer stop()
	var failed atomic.Int64
	_ = Each(trying, jobs, all, func(_ context.Context, n int, one T) error {
		errs[n] = Call(func() error { return f(ctx, n, one) })
		if errs[n] != nil && failed.Add(1) == int64(most) {
			stop()
		}
		return nil
	})
	return errs
}
