package registry

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/redact"
)

// maxBackoff is the longest pause between two attempts.
const maxBackoff = 30 * time.Second

// retry calls try until it succeeds, fails permanently, or has been repeated retries times.
func (p *repository) retry(ctx context.Context, retries int, try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || attempt > retries || ctx.Err() != nil || !isTransient(err) {
			return err
		}
		if cause := p.waitToRetry(ctx, attempt, err, ""); cause != nil {
			return errors.Join(cause, err)
		}
	}
}

// waitToRetry reports that a request, or the reading of a blob, is repeated, and waits: the pauses double, with jitter
// so that many clients do not return at the same time.
func (p *repository) waitToRetry(ctx context.Context, attempt int, err error, blob digest.Digest) error {
	p.host.r.event(store.Event{Kind: store.EventRetry, Destination: p.name.Name(), Blob: blob, Attempt: attempt,
		Err: redact.Error(err)})
	pause := p.host.r.o.Backoff
	for ; attempt > 1 && pause < maxBackoff; attempt-- {
		pause *= 2
	}
	pause = jitter(min(pause, maxBackoff))
	var status *StatusError
	if errors.As(err, &status) {
		pause = max(pause, status.retryAfter)
	}
	return sleep(ctx, pause)
}

// jitter returns a random duration between d/2 and d.
func jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// sleep waits, or returns the cause of the context's end.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// isTransient tells whether another attempt may succeed: the registry is busy or fails, or the connection broke. The
// caller checks that the context has not ended.
func isTransient(err error) bool {
	// It is also context.DeadlineExceeded if the connection was not made in time.
	var connection *net.OpError
	if errors.As(err, &connection) && connection.Timeout() {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	var once *againError
	if errors.Is(err, store.ErrStalled) || errors.As(err, &once) {
		return true
	}
	var answer *StatusError
	if errors.As(err, &answer) {
		return transientStatus(answer.Status) && !answer.NoSpace
	}
	broken := []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED,
		syscall.ECONNABORTED, net.ErrClosed}
	var network net.Error
	return slices.ContainsFunc(broken, func(b error) bool { return errors.Is(err, b) }) ||
		errors.As(err, &network) && network.Timeout() ||
		// net/http does not export its error for an idle connection that the server closes.
		strings.Contains(err.Error(), "server closed idle connection")
}

func transientStatus(code int) bool {
	return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout ||
		code >= 500 && code != http.StatusNotImplemented
}
