package render

import (
	"container/heap"
	"context"
	"errors"
	"iter"

	"github.com/operator-bindery/bindery/declcfg"
)

const (
	// defaultFetches is how many images are fetched concurrently: most of the time is spent waiting for the registry.
	defaultFetches = 8
	// maxFailures is the number of failed references after which no more are started.
	maxFailures = 20
)

// RenderAll renders several references into one stream in opm's writing order. A blob that several references have is
// in the stream once for each; of equal blobs, those of the first reference come first. Images and bundles are fetched
// and rendered concurrently before the first blob; the errors of all references are reported together.
func (o Options) RenderAll(ctx context.Context, refs []string) (iter.Seq2[declcfg.Blob, error], error) {
	if len(refs) == 1 {
		return o.Render(ctx, refs[0])
	}
	kinds := make([]Kind, len(refs))
	for i, ref := range refs {
		var err error
		if kinds[i], err = check(ref, &o); err != nil {
			return nil, &ReferenceError{ref, err}
		}
	}
	return func(yield func(declcfg.Blob, error) bool) {
		prepared, done, err := o.prepare()
		if err != nil {
			yield(nil, err)
			return
		}
		f := &fetcher{o: prepared, spool: newSpool(o.TempDir), streams: make([]stream, len(refs)), client: done}
		err = f.fetchAll(ctx, refs, kinds)
		if err == nil {
			err = f.merge(yield)
		}
		if errors.Is(err, errStopped) {
			_ = f.close() // there is no iteration that could return the error
			return
		}
		if err = errors.Join(err, f.close()); err != nil {
			yield(nil, err)
		}
	}, nil
}

// fetcher renders images and bundles ahead of their turn in the stream.
type fetcher struct {
	o       *Options
	spool   *blobSpool
	streams []stream
	client  func() error // closes the client
}

// stream is the content of a reference: one finished bundle, or the blobs of a catalog.
type stream struct {
	ref   string
	one   *spooled
	blobs iter.Seq2[declcfg.Blob, error]
	done  func() error
}

// fetchAll fetches images and bundles. Catalog directories and databases are read during the iteration.
func (f *fetcher) fetchAll(ctx context.Context, refs []string, kinds []Kind) error {
	for i, ref := range refs {
		f.streams[i] = stream{ref: ref, done: nothing}
	}
	err := fetchEach(ctx, refs, f.o.fetches(), maxFailures, func(i int) (err error) {
		if kinds[i] != Image && kinds[i] != BundleDirectory {
			f.streams[i].blobs = reference(ctx, refs[i], kinds[i], f.o)
			return nil
		}
		return f.fetch(ctx, &f.streams[i], kinds[i])
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// fetch renders one reference. A bundle is finished and spooled.
func (f *fetcher) fetch(ctx context.Context, s *stream, kind Kind) (err error) {
	var c content
	if kind == BundleDirectory {
		c.bundle, err = bundleDirectory(ctx, s.ref, f.o)
	} else {
		c, err = image(ctx, s.ref, f.o)
	}
	if err != nil {
		return err
	}
	if c.bundle == nil {
		s.blobs, s.done = c.blobs, c.done
		return nil
	}
	if err := finish(c.bundle, f.o.Level); err != nil {
		return err
	}
	k, err := f.spool.store(c.bundle)
	s.one = &k
	return err
}

// head is the next blob of a stream.
type head struct {
	at   int // index of the reference
	blob declcfg.Blob
	next func() (declcfg.Blob, error, bool)
}

// heads is a heap of heads; the next blob to yield is at its top.
type heads []*head

func (h heads) Len() int      { return len(h) }
func (h heads) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)   { *h = append(*h, x.(*head)) }
func (h *heads) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func (h heads) Less(i, j int) bool {
	if before(h[i].blob, h[j].blob) {
		return true
	}
	return !before(h[j].blob, h[i].blob) && h[i].at < h[j].at
}

// merge merges sorted streams. It yields nothing before every stream has its first blob, and so every database has been
// validated.
func (f *fetcher) merge(yield func(declcfg.Blob, error) bool) error {
	var waiting heads
	for i := range f.streams {
		s := &f.streams[i]
		if s.one != nil {
			waiting = append(waiting, &head{at: i, blob: s.one.blob})
			continue
		}
		next, stop := iter.Pull2(s.blobs)
		defer stop()
		h := &head{at: i, next: next}
		if more, err := f.advance(h); err != nil {
			return err
		} else if more {
			waiting = append(waiting, h)
		}
	}
	heap.Init(&waiting)
	for waiting.Len() > 0 {
		h := waiting[0]
		b := h.blob
		if s := &f.streams[h.at]; s.one != nil {
			var err error
			if b, err = f.spool.get(*s.one); err != nil {
				return err
			}
		}
		if !yield(b, nil) {
			return errStopped
		}
		more, err := f.advance(h)
		if err != nil {
			return err
		}
		if more {
			heap.Fix(&waiting, 0)
		} else {
			heap.Pop(&waiting)
		}
	}
	return nil
}

// advance reads the next blob of a catalog's stream.
func (f *fetcher) advance(h *head) (more bool, err error) {
	if h.next == nil {
		return false, nil
	}
	b, err, more := h.next()
	if err != nil {
		return false, &ReferenceError{f.streams[h.at].ref, err}
	}
	if !more {
		return false, nil
	}
	if err := finish(b, f.o.Level); err != nil {
		return false, &ReferenceError{f.streams[h.at].ref, err}
	}
	h.blob = b
	return true, nil
}

// errStopped means that the caller has stopped the iteration.
var errStopped = errors.New("stopped")

// close releases the resources of all references.
func (f *fetcher) close() error {
	err := f.spool.close()
	for _, s := range f.streams {
		if s.done != nil {
			err = errors.Join(err, s.done())
		}
	}
	return closing(err, f.client)
}
