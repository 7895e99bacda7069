package medium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/verify"
)

// Check reads every blob and manifest of the archive, also those that no image has, and returns those that are not what
// their digests say. What is read is written to progress, by several goroutines at once.
func (r *Reader) Check(ctx context.Context, jobs int, progress io.Writer) (map[digest.Digest]error, error) {
	var mu sync.Mutex
	wrong := map[digest.Digest]error{}
	err := guard.EachOf(ctx, jobs, r.blobs.inOrder(), func(ctx context.Context, b indexed) error {
		err := r.checkBlob(ctx, b, progress)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			mu.Lock()
			defer mu.Unlock()
			wrong[b.k.digest()] = fmt.Errorf("%s: %w", r.segments[b.segment].name, err)
		}
		return nil
	})
	return wrong, err
}

func (r *Reader) checkBlob(ctx context.Context, b indexed, progress io.Writer) error {
	f, err := r.openSpan(span{b.segment, b.at, b.size})
	if err != nil {
		return err
	}
	_, err = io.Copy(progress, verify.NewReader(ctxio.Reader{Ctx: ctx, R: f}, b.k.digest(), b.size))
	return errors.Join(err, f.Close())
}

// Attached returns the manifests of a repository that need no tag: those that are listed for others, and in the form of
// oc-mirror all that the repository has.
func (r *Reader) Attached(path string) []digest.Digest {
	one := r.repos[path]
	if one == nil {
		return nil
	}
	all := map[digest.Digest]bool{}
	for _, list := range one.referrers {
		for _, d := range list {
			all[d.Digest] = true
		}
	}
	for _, k := range one.revisions {
		all[k.digest()] = true
	}
	return slices.Sorted(maps.Keys(all))
}
