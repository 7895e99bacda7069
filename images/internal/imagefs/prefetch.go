package imagefs

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/guard"
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
	running sync.WaitGroup
	layers  map[int]*fetchedLayer
}

// fetchedLayer is a layer in memory. It is complete and checked once done is closed.
type fetchedLayer struct {
	done    chan struct{}
	content bytes.Buffer
	err     error
}

// start starts to read the small layers, the upper ones first. They are read until the context ends.
func (p *prefetch) start(ctx context.Context, s *Layers) {
	if len(s.Layers) < 2 {
		return
	}
	p.layers = map[int]*fetchedLayer{}
	room := int64(prefetchTotal)
	slots := make(chan struct{}, prefetchAtOnce)
	for n, l := range slices.Backward(s.Layers) {
		if l.Size > prefetchSize || l.Size > room {
			continue
		}
		room -= l.Size
		f := &fetchedLayer{done: make(chan struct{})}
		p.layers[n] = f
		p.running.Go(func() {
			defer close(f.done)
			select {
			case slots <- struct{}{}:
				defer func() { <-slots }()
				f.err = guard.Call(func() error { return s.fetch(ctx, l, &f.content) })
			case <-ctx.Done():
				f.err = context.Cause(ctx)
			}
		})
	}
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

// open returns the content of a layer, for which it waits if that is read ahead.
func (p *prefetch) open(ctx context.Context, s *Layers, n int) (io.ReadCloser, error) {
	f := p.layers[n]
	if f == nil {
		return s.Open(ctx, s.Layers[n])
	}
	<-f.done
	if f.err != nil {
		return nil, fmt.Errorf("fetching: %w", f.err)
	}
	return io.NopCloser(&f.content), nil
}
