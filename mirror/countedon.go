package mirror

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"golang.org/x/sync/errgroup"

	"github.com/operator-bindery/bindery/mirror/imageset"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// LackError is the error of a medium that counts on content which the target does not have.
type LackError struct {
	// Lacking is how much is not there, of All that the medium leaves out. First is one of it.
	Lacking, All int
	First        medium.LeftOut
}

func (e *LackError) Error() string {
	text := fmt.Sprintf("the archive leaves out %d manifests and blobs that the target was to have, and %d of them "+
		"are not there, such as %s", e.All, e.Lacking, e.First.Digest)
	if e.First.Since != nil {
		text += ", which an archive before " + e.First.Since.Format(time.RFC3339) + " carried"
	}
	return text
}

// checkCountedOn looks whether the target has what the medium leaves out, before anything is copied (MIRROR 10.3). What
// the medium names no repository for is found out while it is copied.
func (r *run) checkCountedOn(ctx context.Context) error {
	if r.contained == nil || r.o.DryRun || r.o.PublishOnly {
		return nil
	}
	e := &LackError{All: len(r.contained.LeftOut)}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(r.o.Jobs, 16))
	catalogs := map[string]bool{}
	for _, c := range r.contained.Catalogs {
		catalogs[c.Path] = true
	}
	for _, l := range r.contained.LeftOut {
		// Of catalogs the sources may be on media, and are never at a target.
		if len(l.Repositories) == 0 || slices.ContainsFunc(l.Repositories,
			func(name string) bool { return catalogs[name] }) {
			continue
		}
		g.Go(func() error {
			there, err := r.isThere(gctx, l)
			if err == nil && !there {
				mu.Lock()
				defer mu.Unlock()
				if e.Lacking == 0 {
					e.First = l
				}
				e.Lacking++
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	if e.Lacking > 0 {
		return e
	}
	return nil
}

// isThere tells whether one of the repositories has what the medium leaves out.
func (r *run) isThere(ctx context.Context, l medium.LeftOut) (bool, error) {
	for _, name := range l.Repositories {
		at, err := r.o.Remote.Repository(r.o.Target.Image(imageset.Ref{Path: name}).Repository())
		if err != nil {
			return false, err
		}
		if l.MediaType != "" {
			_, err = at.Head(ctx, l.Digest.String())
		} else {
			var has bool
			has, err = at.HasBlob(ctx, v1.Descriptor{Digest: l.Digest, Size: l.Size})
			if err == nil && !has {
				err = fs.ErrNotExist
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err == nil, err
		}
	}
	return false, nil
}
