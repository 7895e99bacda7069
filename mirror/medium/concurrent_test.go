package medium_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// Images with shared layers are written at once: each blob is opened once, and all are there.
func TestConcurrentWriters(t *testing.T) {
	for _, form := range bothForms {
		dir := t.TempDir()
		w := create(t, dir, medium.Options{Form: form, SegmentBytes: 4 << 20})
		var opened atomic.Int64
		var all sync.WaitGroup
		var list []image
		for i := range 24 {
			one := simple(t, fmt.Sprintf("app%d", i), uint64(i%3), 1_100_000, 100_000, 10)
			list = append(list, one)
			r := w.Repository(fmt.Sprintf("acme/app%d", i%5))
			all.Go(func() {
				for _, b := range one.blobs {
					_, err := r.WriteBlob(context.Background(), b.Descriptor,
						store.Content{Open: func(ctx context.Context, _ int64) (io.ReadCloser, error) {
							opened.Add(1)
							return opener(b.content).Open(ctx, 0)
						}})
					if err != nil {
						t.Error(err)
					}
				}
				if err := r.WriteManifest(context.Background(), one.manifest.content, one.manifest.MediaType,
					store.WriteOptions{Tag: fmt.Sprintf("v%d", i)}); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		account := finish(t, w, medium.Contents{})
		if account.Blobs != 24*2+9 || opened.Load() != 24+9 {
			t.Errorf("%d blobs, %d opened", account.Blobs, opened.Load())
		}
		r := read(t, dir)
		for i, one := range list {
			all.Go(func() {
				if err := check(r.Repository(fmt.Sprintf("acme/app%d", i%5)), one, fmt.Sprintf("v%d", i)); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
}

func check(r store.Reader, i image, tag string) error {
	if _, _, err := r.Manifest(context.Background(), tag); err != nil {
		return err
	}
	for _, b := range i.blobs {
		f, err := r.Blob(context.Background(), b.Descriptor, 0)
		if err != nil {
			return err
		}
		if _, err = io.Copy(io.Discard, f); errors.Join(err, f.Close()) != nil {
			return err
		}
	}
	return nil
}

// A caller that gives up in the middle leaves no trace, and one that waits for it writes the blob itself.
func TestGivingUp(t *testing.T) {
	w := create(t, t.TempDir(), medium.Options{})
	image := simple(t, "app", 1, 3_000_000)
	layer := image.blobs[1]
	ctx, cancel := context.WithCancel(context.Background())
	reading := make(chan struct{})
	var all sync.WaitGroup
	all.Go(func() {
		_, err := w.Repository("a").WriteBlob(ctx, layer.Descriptor, store.Content{Open: func(ctx context.Context, _ int64) (io.ReadCloser,
			error) {
			return &waiting{ctx, reading, layer.content[:700_000]}, nil
		}})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
	<-reading
	all.Go(func() {
		if _, err := w.Repository("b").WriteBlob(context.Background(), layer.Descriptor,
			opener(layer.content)); err != nil {
			t.Error(err)
		}
	})
	cancel()
	all.Wait()
	if !w.Has(layer.Digest) {
		t.Error("it is not there")
	}
}

// waiting is content that comes to a halt until its context ends.
type waiting struct {
	ctx     context.Context
	reading chan struct{}
	rest    []byte
}

func (w *waiting) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		close(w.reading)
		<-w.ctx.Done()
		return 0, w.ctx.Err()
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func (w *waiting) Close() error { return nil }
