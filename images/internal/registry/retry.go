package registry

import (
	"context"
	"errors"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/webclient"
)

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
	var asked time.Duration
	if status := (*StatusError)(nil); errors.As(err, &status) {
		asked = status.retryAfter
	}
	return webclient.Sleep(ctx, webclient.Pause(p.host.r.o.Backoff, attempt, asked))
}

// isTransient tells whether another attempt may succeed: the registry is busy or fails, or the connection broke. The
// caller checks that the context has not ended.
func isTransient(err error) bool {
	var once *againError
	var answer *StatusError
	switch ended := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded); {
	case !ended && errors.As(err, &once):
		return true
	case !ended && errors.As(err, &answer):
		return webclient.IsTransientStatus(answer.Status) && !answer.NoSpace
	}
	return webclient.IsTransient(err)
}
