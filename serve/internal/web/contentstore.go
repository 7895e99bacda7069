package web

import (
	"bufio"
	"compress/gzip"
	"context"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/guard"
)

// writeBuffer is how many compressed bytes are written to the file at once. The compressor writes some 200 at a time.
const writeBuffer = 64 << 10

// contentStore is the gzip form of all lines of a catalog. The first request for it starts the compression to a
// temporary file; all requests read that file, even while it grows. It is safe for concurrent use.
type contentStore struct {
	mu      sync.Mutex
	begun   bool
	file    *atomicfs.Scratch // nil if none could be created
	size    int64             // bytes that can be read
	done    bool              // the file is complete
	err     error             // why it ended early
	changed chan struct{}     // closed when size or done changes
}

// compressed returns the compressed form of a catalog, or nil if no file can be created for it. The caller has acquired
// c.
func (c *Content) compressed() *contentStore {
	k := &c.gzip
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.begun {
		if k.file == nil || k.err != nil {
			return nil
		}
		return k
	}
	k.begun = true
	f, err := atomicfs.NewScratch("", ".bindery-http-*")
	if err != nil {
		return nil
	}
	if !c.acquire() { // a newer catalog has replaced it
		f.Close()
		return nil
	}
	k.file, k.changed = f, make(chan struct{})
	go func() {
		defer c.release()
		err := guard.Call(func() error {
			w := bufio.NewWriterSize(k, writeBuffer)
			z := gzip.NewWriter(w)
			_, err := io.Copy(z, io.NewSectionReader(c.file, 0, c.size))
			if err == nil {
				err = z.Close()
			}
			if err == nil {
				err = w.Flush()
			}
			return err
		})
		k.progress(0, true, err)
	}()
	return k
}

// Write appends to the file. Only the compression calls it.
func (k *contentStore) Write(b []byte) (int, error) {
	n, err := k.file.WriteAt(b, k.size) // only this goroutine changes the size
	k.progress(int64(n), false, nil)
	return n, err
}

func (k *contentStore) progress(n int64, done bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.size, k.done, k.err = k.size+n, done, err
	close(k.changed)
	k.changed = make(chan struct{})
}

// available waits until there are more than at bytes, or the file is complete. done reports that nothing follows after
// size.
func (k *contentStore) available(ctx context.Context, at int64) (size int64, done bool, err error) {
	for {
		k.mu.Lock()
		size, done, err, changed := k.size, k.done, k.err, k.changed
		k.mu.Unlock()
		if done || size > at {
			return size, done, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return 0, false, context.Cause(ctx)
		}
	}
}

// serve sends everything.
func (k *contentStore) serve(w http.ResponseWriter, r *http.Request) error {
	for at := int64(0); ; {
		size, done, err := k.available(r.Context(), at)
		if err != nil {
			return err
		}
		if done && at == 0 {
			w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		}
		n, err := io.Copy(w, io.NewSectionReader(k.file, at, size-at))
		if at += n; err != nil || done {
			return err
		}
	}
}

func (k *contentStore) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != nil {
		k.file.Close()
	}
}
