package imagefs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

const (
	// prefetchSize is the size up to which a layer is read ahead: a bundle has several small layers, and each takes a
	// round trip. BenchmarkLatency shows the gain.
	prefetchSize   = 256 << 10
	prefetchTotal  = 2 << 20
	prefetchAtOnce = 4
)

// prefetch reads small layers of an image concurrently.
type prefetch struct {
	cancel context.CancelFunc
	all    sync.WaitGroup
	layers map[int]*fetchedLayer
}

// fetchedLayer is a layer in memory. It is complete and checked once done is closed.
type fetchedLayer struct {
	done    chan struct{}
	content bytes.Buffer
	err     error
}

// prefetch starts to read the small layers, the upper ones first. The caller must close it.
func (s *Layers) prefetch(ctx context.Context) *prefetch {
	p := &prefetch{layers: map[int]*fetchedLayer{}, cancel: func() {}}
	if len(s.Layers) < 2 {
		return p
	}
	ctx, p.cancel = context.WithCancel(ctx)
	room := int64(prefetchTotal)
	slots := make(chan struct{}, prefetchAtOnce)
	for n, l := range slices.Backward(s.Layers) {
		if l.Size > prefetchSize || l.Size > room {
			continue
		}
		room -= l.Size
		f := &fetchedLayer{done: make(chan struct{})}
		p.layers[n] = f
		p.all.Go(func() {
			defer close(f.done)
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				f.err = s.fetch(ctx, l, &f.content)
			case <-ctx.Done():
				f.err = context.Cause(ctx)
			}
		})
	}
	return p
}

// fetch reads a blob into memory.
func (s *Layers) fetch(ctx context.Context, d v1.Descriptor, into *bytes.Buffer) error {
	r, err := s.Open(ctx, d)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(into, r)
	return err
}

// open waits for a layer that is read ahead and returns it; false if it is not read ahead.
func (p *prefetch) open(n int) (io.ReadCloser, bool, error) {
	f, ok := p.layers[n]
	if !ok {
		return nil, false, nil
	}
	<-f.done
	if f.err != nil {
		return nil, true, fmt.Errorf("fetching: %w", f.err)
	}
	return io.NopCloser(&f.content), true, nil
}

// close cancels the reading.
func (p *prefetch) close() {
	p.cancel()
	p.all.Wait()
}
