package layers

import (
	"context"
	"slices"
	"sync"

	"github.com/operator-bindery/bindery/internal/guard"
)

// Pool writes layers into a [Store] concurrently. Methods must be called from one goroutine.
//
// Each worker reuses one compressor, because creating one needs more memory than a layer. Workers do not wait for the
// disk: finished layers are synced by other goroutines, many at a time, which costs file systems little more than a
// single one.
type pool struct {
	store  *Store
	o      Options
	group  *guard.Group
	seals  guard.Group
	ctx    context.Context
	codecs chan codec
	done   func(int, Blob)

	mu    sync.Mutex
	blobs []Blob
	n     int
}

// sealing is how many files are synced concurrently.
const sealing = 16

// newPool starts a pool with the given number of workers, at least one. done, unless nil, is called after each layer
// with the index of its Add call; calls do not overlap.
func newPool(ctx context.Context, s *Store, o Options, jobs int, done func(int, Blob)) (*pool, error) {
	jobs = max(jobs, 1)
	p := &pool{store: s, o: o, codecs: make(chan codec, jobs), done: done}
	for range jobs {
		c, err := newCodec(o.Compression)
		if err != nil {
			return nil, err
		}
		p.codecs <- c
	}
	p.group, p.ctx = guard.WithContext(ctx)
	p.group.SetLimit(jobs)
	p.seals.SetLimit(sealing)
	return p, nil
}

// add queues a layer and waits for a free worker. After a failure it does nothing: [pool.wait] returns the error.
// release, unless nil, is always called when the entries are no longer needed.
func (p *pool) add(l Layer, release func()) {
	index := p.n
	p.n++
	p.group.Go(func() error {
		if release != nil {
			defer release()
		}
		if p.ctx.Err() != nil {
			return context.Cause(p.ctx)
		}
		c := <-p.codecs
		defer func() { p.codecs <- c }()
		d, err := p.store.draft(p.ctx, c, l, p.o)
		if err != nil {
			return err
		}
		p.seals.Go(func() error {
			if err := p.store.seal(d); err != nil {
				return err
			}
			p.addBlob(index, d.blob)
			return nil
		})
		return nil
	})
}

func (p *pool) addBlob(index int, b Blob) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if missing := index + 1 - len(p.blobs); missing > 0 {
		p.blobs = append(p.blobs, make([]Blob, missing)...)
	}
	p.blobs[index] = b
	if p.done != nil {
		p.done(index, b)
	}
}

// wait waits for all layers and returns them in the order of the add calls, or the first error.
func (p *pool) wait() ([]Blob, error) {
	err := p.group.Wait()
	if serr := p.seals.Wait(); err == nil {
		err = serr
	}
	if err != nil {
		return nil, err
	}
	return p.blobs, nil
}

// WriteAll writes the layers and returns their blobs in the given order. It starts with the biggest, so that none runs
// alone at the end. done, unless nil, is called after each layer with its index; calls do not overlap.
func (s *Store) WriteAll(ctx context.Context, layers []Layer, o Options, jobs int,
	done func(int, Blob)) ([]Blob, error) {
	byWork := make([]int, len(layers))
	for i := range byWork {
		byWork[i] = i
	}
	added := done
	if done != nil {
		added = func(at int, b Blob) { done(byWork[at], b) }
	}
	p, err := newPool(ctx, s, o, jobs, added)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(byWork, func(a, b int) int { return int(min(1, max(-1, layers[b].Size()-layers[a].Size()))) })
	for _, i := range byWork {
		p.add(layers[i], nil)
	}
	written, err := p.wait()
	if err != nil {
		return nil, err
	}
	blobs := make([]Blob, len(layers))
	for at, i := range byWork {
		blobs[i] = written[at]
	}
	return blobs, nil
}
