package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"sync/atomic"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"
)

// surveysAtOnce is how many images are surveyed at once. After as many in a row that cannot be read the survey ends: a
// registry that is gone need not be asked twice for each image.
const surveysAtOnce = 8

// surveyAhead reads the manifests of the images beside the copying, so that the progress knows how many bytes there
// are. What it asks the target is not asked again, and manifests are in the cache of [Options.Images] afterwards.
// Whatever it cannot find out is left to the copying. The function that it returns ends it.
func (r *run) surveyAhead(ctx context.Context, list []*item) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	var todo []*item
	for _, i := range list {
		if i.account.Status != Blocked && i.account.Status != Present {
			todo = append(todo, i)
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		var g errgroup.Group
		g.SetLimit(surveysAtOnce)
		var failed atomic.Int32
		for _, i := range todo {
			g.Go(func() error {
				if ctx.Err() != nil {
					return nil
				}
				if r.surveyOne(ctx, i) == nil {
					failed.Store(0)
				} else if failed.Add(1) >= surveysAtOnce {
					cancel()
				}
				return nil
			})
		}
		_ = g.Wait() // no function returns an error
		if ctx.Err() == nil {
			var rest int64
			r.progress.add(func(e *Event) { e.Counting, rest = false, e.AllBytes-e.Bytes })
			if r.o.Mode == ToDisk {
				r.checkSpace(rest)
			}
		}
	}()
	return func() {
		cancel()
		<-done
		r.progress.add(func(e *Event) { e.Counting = false })
	}
}

// surveyOne adds the blobs of an image that the target does not have to the progress.
func (r *run) surveyOne(ctx context.Context, i *item) error {
	to, err := r.to.repository(i.destination)
	if err != nil {
		return err
	}
	there, err := r.askFor(ctx, to, i)
	if err != nil {
		return err
	}
	if i.byDigest() && there.Digest == i.source.Digest || r.known(i) {
		return nil
	}
	sizes, err := r.measureItem(ctx, i, there)
	if err != nil || sizes == nil {
		return err
	}
	blobs := maps.Clone(sizes.blobs)
	for _, m := range append(sizes.instances, sizes.top) {
		delete(blobs, m.Digest)
	}
	i.moving.expect(blobs)
	return nil
}

// askFor asks the target, once, for the manifest under the name of an image; it is empty if there is none.
func (r *run) askFor(ctx context.Context, to repository, i *item) (v1.Descriptor, error) {
	i.asking.Lock()
	defer i.asking.Unlock()
	if i.asked || r.writer != nil && !i.byDigest() {
		return i.there, nil
	}
	there, err := to.Head(ctx, i.destination.Tag)
	if err == nil && i.byDigest() && there.Digest != i.source.Digest && r.state.has(r.carriedKey(i, i.source.Digest)) {
		// The tag may be the list of what is attached to the image.
		there, err = to.Head(ctx, i.source.Digest.String())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return v1.Descriptor{}, fmt.Errorf("%s: %w", i.destination.Name(), err)
	}
	if err == nil {
		i.there = there
	}
	i.asked = true
	return i.there, nil
}
