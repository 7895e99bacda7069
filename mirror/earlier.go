package mirror

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// asksAtOnce is how many images the target is asked for at once: an answer has no body, and costs less than its way.
const asksAtOnce = 16

// skipCarried asks the target for the images that earlier runs have carried, and marks those that are as they were. That
// is one request for each, many at once, so that a run with nothing new is short. What cannot be asked is left to the
// copying, which says why.
func (r *run) skipCarried(ctx context.Context, list []*item) error {
	if r.writer != nil {
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(r.o.Jobs, asksAtOnce))
	for _, i := range list {
		if i.account.Status == Blocked || !i.byDigest() || r.o.Recheck ||
			!r.state.has(r.carriedKey(i, i.source.Digest)) {
			continue
		}
		g.Go(func() error {
			to, err := r.to.repository(i.destination)
			if err != nil {
				return nil
			}
			there, err := to.Head(gctx, i.destination.Tag)
			if err == nil && there.Digest == i.source.Digest && r.settled(i, there) {
				r.done(i, nil)
			}
			return context.Cause(gctx)
		})
	}
	return g.Wait()
}
