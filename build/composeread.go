package build

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/operator-bindery/bindery/internal/layers"
)

// readAhead is the number of references opened concurrently. Their content is spooled in order.
const readAhead = 4

// readAll reads references into the spool. The problems of all are reported.
func (c *composer) readAll(ctx context.Context, refs []*composed) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type opened struct {
		catalog CatalogInput
		release func() error
		err     error
	}
	answers := make([]chan opened, len(refs))
	for i := range answers {
		answers[i] = make(chan opened, 1)
	}
	slots := make(chan struct{}, readAhead)
	var all sync.WaitGroup
	all.Go(func() {
		for i, r := range refs {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				answers[i] <- opened{err: context.Cause(ctx)}
				continue
			}
			all.Go(func() {
				catalog, release, err := r.Read(ctx)
				answers[i] <- opened{catalog, release, err}
			})
		}
	})
	var errs []error
	for i, r := range refs {
		a := <-answers[i]
		err := a.err
		if err == nil && len(errs) == 0 {
			r.read, err = c.spoolOf(ctx, a.catalog)
		}
		if a.err == nil && a.release != nil {
			err = errors.Join(err, a.release())
		}
		if ctx.Err() != nil { // report the cancellation once
			err = nil
		}
		if err != nil {
			errs = append(errs, &ReferenceError{r.Name, r.Image, err})
		}
		select {
		case <-slots:
		default:
		}
	}
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return errors.Join(errs...)
}

// spoolOf spools the content of a catalog by package.
func (c *composer) spoolOf(ctx context.Context, in CatalogInput) (map[string]content, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	p := planner{fsys: in.FS, s: c.s, at: c.at, private: true, changed: map[string]bool{},
		entries: map[string][]layers.Entry{}}
	if in.Changed != nil {
		return nil, errors.New("a catalog with changed packages cannot be part of a composition")
	}
	if err := p.files(ctx, in.Files); err != nil {
		return nil, err
	}
	if in.Blobs != nil {
		if err := p.blobs(ctx, in.Blobs, formats(nil)); err != nil {
			return nil, err
		}
	}
	all, err := sortedContents(p.entries)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPackages, err)
	}
	parts := make(map[string]content, len(all))
	for _, part := range all {
		parts[part.pkg] = part
	}
	return parts, nil
}
