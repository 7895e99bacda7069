package webclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrStalled is the failure of an attempt that transferred nothing, or too little, for too long.
var ErrStalled = errors.New("nothing has moved")

const (
	// MaxHeaderWait is how long a server may take to begin its answer, unless the limit for stalling is lower.
	MaxHeaderWait = 30 * time.Second
	defaultStall  = time.Minute
	// stallProgress is how many bytes must move within the limit for stalling. It is more than one, so that a server
	// cannot hold a transfer with one byte a second.
	stallProgress = 16 << 10
)

// Watch cancels a request in which nothing moves: fewer than 16 KiB within its limit. Only the time spent waiting for
// the server counts.
type Watch struct {
	// Context is that of the request.
	Context context.Context
	// Limit is how long nothing may move.
	Limit time.Duration

	cancel context.CancelCauseFunc
	left   time.Duration
	bytes  int
}

// NewWatch returns a watch with a limit, one minute if it is 0. The caller calls Stop.
func NewWatch(ctx context.Context, limit time.Duration) *Watch {
	if limit <= 0 {
		limit = defaultStall
	}
	w := &Watch{Limit: limit, left: limit}
	w.Context, w.cancel = context.WithCancelCause(ctx)
	return w
}

// Timer cancels the request after a time, unless it is stopped.
func (w *Watch) Timer(after time.Duration) *time.Timer {
	return time.AfterFunc(after, func() { w.cancel(fmt.Errorf("%w for %s", ErrStalled, after)) })
}

// Wait starts to wait for the server, at most that long; the function it returns ends that.
func (w *Watch) Wait(most time.Duration) func() {
	start, timer := time.Now(), w.Timer(min(w.left, most))
	return func() {
		timer.Stop()
		w.left -= time.Since(start)
	}
}

// Read reads from the body of an answer.
func (w *Watch) Read(body io.Reader, p []byte) (int, error) {
	done := w.Wait(w.Limit)
	n, err := body.Read(p)
	done()
	if w.bytes += n; w.bytes >= stallProgress {
		w.bytes, w.left = 0, w.Limit
	}
	if err == io.EOF {
		return n, err
	}
	return n, w.Cause(err)
}

// Stop ends the watch and the request. It may be called again.
func (w *Watch) Stop() { w.cancel(nil) }

// Cause returns [ErrStalled] in place of an error that the watch caused.
func (w *Watch) Cause(err error) error {
	if cause := context.Cause(w.Context); err != nil && errors.Is(cause, ErrStalled) {
		return cause
	}
	return err
}
