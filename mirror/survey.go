package mirror

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/mirror/filter"
	"github.com/operator-bindery/bindery/mirror/internal/freespace"
)

// surveysAtOnce is how many images are surveyed at once. After as many in a row that cannot be read the survey ends: a
// registry that is gone need not be asked twice for each image.
const surveysAtOnce = 8

// survey begins to read the manifests of the images while they are copied, so that the progress knows how many bytes
// there are. Answers of the target are kept for the copying, and manifests are in the cache of [Options.Images]
// afterwards. Errors are left to the copying. end stops the reading.
func (r *run) survey(ctx context.Context, list []*item) (end func()) {
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
		var failed atomic.Int32
		err := guard.Each(ctx, surveysAtOnce, todo, func(ctx context.Context, _ int, i *item) error {
			err := r.measureMissing(ctx, i)
			if err == nil {
				failed.Store(0)
			} else if failed.Add(1) >= surveysAtOnce {
				return err
			}
			return nil
		})
		if err == nil && ctx.Err() == nil {
			var rest int64
			r.report.progress.add(func(e *Event) { e.Counting, rest = false, e.AllBytes-e.Bytes })
			if r.o.Mode == ToDisk {
				checkSpace(r.report, r.o.Archive, rest)
			}
		}
	}()
	return func() {
		cancel()
		<-done
		r.report.progress.add(func(e *Event) { e.Counting = false })
	}
}

// measureMissing adds the blobs of an image that the target does not have to the progress.
func (r *run) measureMissing(ctx context.Context, i *item) error {
	there, err := r.head(ctx, i)
	if err != nil {
		return err
	}
	if i.byDigest() && there.Digest == i.source.Digest || r.places.other.hasImage(i) {
		return nil
	}
	image, err := r.places.measure(ctx, i, there)
	if err != nil || image == nil {
		return err
	}
	r.places.other.remove(image.Blobs)
	for _, m := range append(image.Instances, image.Top) {
		delete(image.Blobs, m.Digest)
	}
	i.moving.Expect(image.Blobs)
	return nil
}

// blobOverhead is what an archive has in addition to each blob: its header, its name in the description.
const blobOverhead = 2 << 10

// checkSpace warns if the disk of the archive has less space than is needed, and returns how much it has; zero if that
// cannot be found out.
func checkSpace(report *report, archive string, needed int64) int64 {
	free, err := freespace.Of(archive)
	if err != nil {
		report.log.debug(fmt.Sprintf("space of %s: %v", archive, err))
		return 0
	}
	if needed > free {
		report.problem(filter.Warning, archive, "make room, or name a directory on another disk",
			"the archive needs %d bytes, and its disk has %d", needed, free)
	}
	return free
}
