package registry

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"sync"
	"time"
)

// payload is the body of a request.
type payload struct {
	// open returns the content from its first byte. It is called once for each attempt; the context ends with the
	// request.
	open func(context.Context) (io.ReadCloser, error)
	size int64
	kind string // the media type
}

// bytesPayload returns a body with a text.
func bytesPayload(text []byte, kind string) *payload {
	return &payload{size: int64(len(text)), kind: kind, open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(text)), nil
	}}
}

// attach sets the body of a request.
func (p *payload) attach(req *http.Request, w *stallWatch) (*uploading, error) {
	u := &uploading{watch: w}
	first, err := u.open(p)
	if err != nil {
		return nil, err
	}
	req.Body, req.ContentLength = first, p.size
	if p.size == 0 {
		_ = first.Close()
		req.Body = http.NoBody
	}
	req.GetBody = func() (io.ReadCloser, error) { return u.open(p) }
	req.Header.Set("Content-Type", p.kind)
	u.timer = w.Timer(w.Limit)
	return u, nil
}

// uploading is a body that is being sent. net/http reads it in another goroutine, which may outlive the request.
type uploading struct {
	watch *stallWatch
	held  sync.WaitGroup // bodies that net/http has not closed

	mu    sync.Mutex
	timer *time.Timer
	ended bool
	err   error // from reading the source
}

func (u *uploading) open(p *payload) (io.ReadCloser, error) {
	r, err := p.open(u.watch.Context)
	if err != nil {
		return nil, err
	}
	u.held.Add(1)
	return &uploadBody{u: u, r: r}, nil
}

// stop ends the watch of the upload.
func (u *uploading) stop() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.ended = true
	u.timer.Stop()
}

// closeWait is how long close waits for net/http to close the body.
const closeWait = 5 * time.Second

// close waits until the source is not read any more, and returns the error of reading it. The request has ended.
func (u *uploading) close() error {
	if u == nil {
		return nil
	}
	done := make(chan struct{})
	go func() { u.held.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(closeWait):
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.err
}

// paused stops the watch while the source is read, since that is not the registry's time. It tells whether the request
// has ended.
func (u *uploading) paused() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.timer != nil {
		u.timer.Stop()
	}
	return u.ended
}

// resumed starts the watch again.
func (u *uploading) resumed(err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended {
		return
	}
	if err != nil && err != io.EOF && u.watch.Context.Err() == nil {
		u.err = err
	}
	u.timer.Reset(u.watch.Limit)
}

// uploadBody is the body of a request.
type uploadBody struct {
	u    *uploading
	r    io.ReadCloser
	once sync.Once
	err  error
}

func (b *uploadBody) Read(p []byte) (int, error) {
	if b.u.paused() {
		return 0, io.ErrClosedPipe
	}
	p = b.u.watch.throttle.cut(p)
	n, err := b.r.Read(p)
	b.u.watch.throttle.wait(b.u.watch.Context, n)
	b.u.resumed(err)
	return n, err
}

func (b *uploadBody) Close() error {
	b.once.Do(func() {
		b.err = b.r.Close()
		b.u.held.Done()
	})
	return b.err
}
