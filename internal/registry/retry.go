package registry

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/docker/distribution/registry/api/errcode"
	"go.podman.io/image/v5/docker"

	"github.com/operator-bindery/bindery/images/store"
)

// maxBackoff is the longest pause between two attempts.
const maxBackoff = 30 * time.Second

// retry calls try until it succeeds, fails permanently, or has been repeated retries times. Pauses begin with backoff
// and double, with jitter so that many clients do not return at the same time.
func retry(ctx context.Context, retries int, backoff time.Duration, again func(attempt int, err error),
	try func() error) error {
	for attempt := 1; ; attempt++ {
		err := try()
		if err == nil || attempt > retries || ctx.Err() != nil || !transient(err) {
			return err
		}
		if again != nil {
			again(attempt, err)
		}
		wait := jitter(backoff)
		var status *StatusError
		if errors.As(err, &status) {
			wait = max(wait, status.retryAfter)
		}
		if cause := sleep(ctx, wait); cause != nil {
			return errors.Join(cause, err)
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// pause waits before the attempt of that number, counted from 1.
func pause(ctx context.Context, backoff time.Duration, attempt int) error {
	for ; attempt > 1 && backoff < maxBackoff; attempt-- {
		backoff *= 2
	}
	return sleep(ctx, jitter(min(backoff, maxBackoff)))
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

// transient tells whether another attempt may succeed: the registry is busy or fails, or the connection broke. The
// caller checks that the context has not ended.
func transient(err error) bool {
	// It is also context.DeadlineExceeded if the connection was not made in time.
	var connection *net.OpError
	if errors.As(err, &connection) && connection.Timeout() {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if errors.Is(err, docker.ErrTooManyRequests) || errors.Is(err, store.ErrStalled) {
		return true
	}
	var once *againError
	if errors.As(err, &once) {
		return true
	}
	var answer *StatusError
	if errors.As(err, &answer) {
		return transientStatus(answer.Status) && !answer.NoSpace
	}
	var status docker.UnexpectedHTTPStatusError
	if errors.As(err, &status) {
		return transientStatus(status.StatusCode)
	}
	var many errcode.Errors
	if errors.As(err, &many) {
		for _, e := range many {
			if !transient(e) {
				return false
			}
		}
		return len(many) > 0
	}
	var one errcode.Error
	if errors.As(err, &one) {
		return transientStatus(one.Code.Descriptor().HTTPStatusCode)
	}
	var coded interface{ ErrorCode() errcode.ErrorCode }
	if errors.As(err, &coded) {
		return transientStatus(coded.ErrorCode().Descriptor().HTTPStatusCode)
	}
	for _, broken := range []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED,
		syscall.ECONNABORTED, net.ErrClosed} {
		if errors.Is(err, broken) {
			return true
		}
	}
	var network net.Error
	if errors.As(err, &network) && network.Timeout() {
		return true
	}
	// net/http does not export its error for an idle connection that the server closes.
	return strings.Contains(err.Error(), "server closed idle connection")
}

func transientStatus(code int) bool {
	return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout ||
		code >= 500 && code != http.StatusNotImplemented
}
