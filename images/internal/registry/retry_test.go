package registry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/internal/fault"
)

func TestTransient(t *testing.T) {
	yes := []error{
		&StatusError{Status: 429}, &StatusError{Status: 503}, io.ErrUnexpectedEOF, syscall.ECONNRESET, &net.OpError{Err: syscall.ECONNREFUSED},
	}
	no := []error{
		errors.New("x"), context.Canceled, context.DeadlineExceeded, &StatusError{Status: 404},
		&StatusError{Status: 403}, &StatusError{Status: 401}, os.ErrNotExist,
		syscall.ENOSPC, fault.ErrIntegrity,
	}
	for _, err := range yes {
		if !isTransient(fmt.Errorf("doing: %w", err)) {
			t.Errorf("%v is not tried again", err)
		}
	}
	for _, err := range no {
		if isTransient(fmt.Errorf("doing: %w", err)) {
			t.Errorf("%v is tried again", err)
		}
	}
}

// A connection that is not made in time is tried again. That error calls itself the end of a context's time as well,
// which is none of it.
func TestTransientErrors(t *testing.T) {
	_, late := (&net.Dialer{Timeout: time.Nanosecond}).DialContext(t.Context(), "tcp", "127.0.0.1:1")
	if !errors.Is(late, context.DeadlineExceeded) {
		t.Fatalf("the error of a late connection is %v", late)
	}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{late, true},
		{fmt.Errorf("get: %w", late), true},
		{context.DeadlineExceeded, false},
		{context.Canceled, false},
		{&StatusError{Status: http.StatusTooManyRequests}, true},
		{&StatusError{Status: http.StatusNotFound}, false},
	} {
		if got := isTransient(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
