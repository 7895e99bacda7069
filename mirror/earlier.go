package mirror

import (
	"context"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// asksAtOnce is how many images the target is asked for at once: an answer has no body, and costs less than its way.
const asksAtOnce = 16

// skipCarried asks the target for the images that earlier runs have carried, and marks those that are as they were. That
// is one request for each, and one to the source of an image without a digest, many at once, so that a run with nothing
// new is short. What cannot be asked is left to the copying, which says why.
func (r *run) skipCarried(ctx context.Context, list []*item) error {
	if r.writer != nil {
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(r.o.Jobs, asksAtOnce))
	for _, i := range list {
		was := r.state.has(r.carriedKey(i, i.source.Digest))
		if !i.byDigest() {
			was = i.source.InRegistry() && r.state.hasPlace(r.carriedKey(i, ""))
		}
		if !was || i.account.Status == Blocked || r.o.Recheck {
			continue
		}
		if demanded, err := r.demands(ctx, i.source); demanded || err != nil {
			continue // the source is judged first
		}
		g.Go(func() error {
			to, err := r.to.repository(i.destination)
			if err != nil {
				return nil
			}
			there, err := to.Head(gctx, i.destination.Tag)
			want := i.source.Digest
			if err == nil && !i.byDigest() && r.state.has(r.carriedKey(i, there.Digest)) {
				var is v1.Descriptor
				is, err = r.from.head(gctx, i)
				want = is.Digest
			}
			if err == nil && there.Digest == want && r.settled(i, there) {
				r.done(i, nil)
			}
			return context.Cause(gctx)
		})
	}
	return g.Wait()
}
