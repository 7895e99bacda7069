package medium_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// measured is content that takes the size of the heap while it is read.
type measured struct {
	io.ReadCloser
	peak *atomic.Uint64
	n    int
}

func (m *measured) Read(p []byte) (int, error) {
	if m.n++; m.n%64 == 1 {
		var s runtime.MemStats
		runtime.ReadMemStats(&s)
		for old := m.peak.Load(); s.HeapAlloc > old && !m.peak.CompareAndSwap(old, s.HeapAlloc); old = m.peak.Load() {
		}
	}
	return m.ReadCloser.Read(p)
}

// Memory is that of the small blobs that are on their way, whatever the size and number of all: here 288 MiB in large
// blobs and 128 of 1 MiB, which 16 callers write at once.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 400 MiB")
	}
	var descriptors []v1.Descriptor
	for i := range int64(3) {
		descriptors = append(descriptors, zeroBlob(t, 96<<20+i))
	}
	for i := range int64(128) {
		descriptors = append(descriptors, zeroBlob(t, 1<<20-i))
	}
	dir := t.TempDir()
	w := create(t, dir, medium.Options{})
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	var peak atomic.Uint64
	next := make(chan v1.Descriptor)
	var all sync.WaitGroup
	for i := range 16 {
		r := w.Repository(fmt.Sprintf("acme/app%d", i))
		all.Go(func() {
			for d := range next {
				_, err := r.WriteBlob(context.Background(), d,
					store.Content{Open: func(_ context.Context, from int64) (io.ReadCloser, error) {
						return &measured{ReadCloser: &zeros{d.Size - from}, peak: &peak}, nil
					}})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	for _, d := range descriptors {
		next <- d
	}
	close(next)
	all.Wait()
	if grown := int64(peak.Load()) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d MiB", grown>>20)
	} else {
		t.Logf("%d MiB", grown>>20)
	}
	if err := w.Discard(); err != nil {
		t.Error(err)
	}
}
