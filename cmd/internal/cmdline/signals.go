package cmdline

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// Signal is the cause of a context that a signal cancelled.
type Signal struct{ syscall.Signal }

func (s Signal) Error() string {
	switch s.Signal {
	case syscall.SIGINT:
		return "interrupted by SIGINT"
	case syscall.SIGTERM:
		return "interrupted by SIGTERM"
	case syscall.SIGHUP:
		return "interrupted by SIGHUP"
	}
	return "interrupted by " + s.Signal.String()
}

// Status returns the exit status that a shell reports for a process killed by the signal.
func (s Signal) Status() int { return 128 + int(s.Signal) }

// WithSignals returns a context that SIGINT, SIGTERM and SIGHUP cancel with a [Signal] as cause. A second signal, or
// the end of the grace period after the first, calls exit with the signal's status. SIGPIPE no longer kills the
// process: a write to a closed pipe is an ordinary error, so that temporary files are removed.
//
// Signals in except are not handled. The returned function stops the handling.
func WithSignals(parent context.Context, grace time.Duration, exit func(status int),
	except ...os.Signal) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ch := make(chan os.Signal, 2)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if !slices.Contains(except, s) {
			signal.Notify(ch, s)
		}
	}
	signal.Ignore(syscall.SIGPIPE)
	done := make(chan struct{})
	go func() {
		var first Signal
		select {
		case s := <-ch:
			first = asSignal(s)
			cancel(first)
		case <-done:
			return
		}
		select {
		case s := <-ch:
			exit(asSignal(s).Status())
		case <-time.After(grace):
			exit(first.Status())
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(ch)
		close(done)
		cancel(context.Canceled)
	}
}

func asSignal(s os.Signal) Signal {
	if n, ok := s.(syscall.Signal); ok {
		return Signal{n}
	}
	panic(fmt.Sprintf("unexpected signal %v", s))
}
