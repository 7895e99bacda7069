package build

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/layers"
)

// staleError reports a layer that differs from its cache record. The record is removed, and the next build writes the
// layer.
type staleError struct {
	Layer     string
	Was, Made digest.Digest
}

func (e *staleError) Error() string {
	return fmt.Sprintf("layer %s: the cache recorded %s, but it is %s; the record has been removed: run the command "+
		"again, or with --no-cache",
		e.Layer, e.Was, e.Made)
}

// lazyLayer is a layer with a known digest. Its bytes are read from the cache, or written, only when a destination
// needs them. It is safe for concurrent use.
type lazyLayer struct {
	part  part
	o     layers.Options
	blob  layers.Blob
	known *Cache
	store *layers.Store

	mu sync.Mutex
}

// open opens the bytes of the layer.
func (l *lazyLayer) open(ctx context.Context) (io.ReadCloser, int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.store.Has(l.blob.Digest) {
		if r, ok := l.known.blob(ctx, l.blob); ok {
			return r, l.blob.Size, nil
		}
		if err := l.write(ctx); err != nil {
			return nil, 0, err
		}
	}
	f, err := os.Open(l.store.Path(l.blob.Digest))
	return f, l.blob.Size, err
}

// write writes the layer into the store.
func (l *lazyLayer) write(ctx context.Context) error {
	b, err := l.store.Write(ctx, l.part.layer, l.o)
	if err != nil {
		return err
	}
	if b.Digest != l.blob.Digest || b.DiffID != l.blob.DiffID || b.Size != l.blob.Size {
		l.known.forget(l.part.key)
		return &staleError{Layer: b.Name, Was: l.blob.Digest, Made: b.Digest}
	}
	l.known.keepBlob(b, l.store.Path(b.Digest))
	return nil
}

// path returns the file of the layer, if it has been written.
func (l *lazyLayer) path() (string, bool) {
	return l.store.Path(l.blob.Digest), l.store.Has(l.blob.Digest)
}

// file returns a file of the layer, written from the cache if necessary.
func (l *lazyLayer) file(ctx context.Context) (string, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	path, ok := l.path()
	if !ok && l.known != nil {
		ok = l.known.blobs.CopyTo(ctx, l.blob.Digest, l.blob.Size, path)
	}
	return path, ok
}

// NeedsInput reports whether layers may be written only when the image is copied: the input must then not change until
// the image is closed.
func (i *Image) NeedsInput() bool { return len(i.lazy) > 0 }
