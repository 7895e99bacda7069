package webclient

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// MaxPause is the longest pause between two attempts, also of one that a server asks for.
const MaxPause = 30 * time.Second

// Pause returns how long to wait after an attempt, the first of which is 1. The pauses double from the first one, with
// jitter so that many clients do not return at the same time; asked is what [RetryAfter] returns.
func Pause(first time.Duration, attempt int, asked time.Duration) time.Duration {
	for ; attempt > 1 && first < MaxPause; attempt-- {
		first *= 2
	}
	return max(Jitter(min(first, MaxPause)), min(asked, MaxPause))
}

// Jitter returns a random duration between d/2 and d.
func Jitter(d time.Duration) time.Duration { return d/2 + rand.N(d/2+1) }

// Sleep waits, or returns the cause of the context's end.
func Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// RetryAfter reads the header Retry-After: seconds or a time (RFC 9110). The result is at most [MaxPause].
func RetryAfter(header http.Header) time.Duration {
	text := header.Get("Retry-After")
	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Duration(max(0, min(seconds, int64(MaxPause/time.Second)))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, min(time.Until(at), MaxPause))
	}
	return 0
}

// IsTransient tells whether another attempt may succeed after an error of a connection. The caller checks that the
// context has not ended.
func IsTransient(err error) bool {
	// It is also context.DeadlineExceeded if the connection was not made in time.
	var connection *net.OpError
	if errors.As(err, &connection) && connection.Timeout() || errors.Is(err, ErrStalled) {
		return true
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	broken := []error{io.ErrUnexpectedEOF, io.EOF, syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNREFUSED,
		syscall.ECONNABORTED, net.ErrClosed}
	var network net.Error
	return slices.ContainsFunc(broken, func(b error) bool { return errors.Is(err, b) }) ||
		errors.As(err, &network) && network.Timeout() ||
		// net/http does not export its error for an idle connection that the server closes.
		strings.Contains(err.Error(), "server closed idle connection")
}

// IsTransientStatus tells whether another attempt may succeed after an answer: the server is busy or fails.
func IsTransientStatus(code int) bool {
	return code == http.StatusTooManyRequests || code == http.StatusRequestTimeout ||
		code >= 500 && code != http.StatusNotImplemented
}
