package outage

import (
	"errors"
	"fmt"
	"net/http"
	"syscall"
	"testing"

	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/store"
	"github.com/operator-bindery/bindery/mirror/medium"
)

// Only what all further images would run into ends a run, and no fault of a single image.
func TestFatal(t *testing.T) {
	full := &registries.StatusError{Status: http.StatusInsufficientStorage, NoSpace: true}
	for _, c := range []struct {
		name string
		err  error
		want bool
	}{
		{"none", nil, false},
		{"an image that is not there", &registries.StatusError{Status: http.StatusNotFound}, false},
		{"this disk is full", fmt.Errorf("write: %w", syscall.ENOSPC), true},
		{"a quota", fmt.Errorf("write: %w", syscall.EDQUOT), true},
		{"the target is full", full, true},
		{"a source that says it is full", &store.SourceError{Err: full, Opening: true}, false},
		{"a source that is read", &store.SourceError{Err: full}, false},
		{"larger than a segment", medium.ErrTooLarge, true},
	} {
		if got := Fatal(c.err); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	var inner *registries.StatusError
	if err := error(&store.SourceError{Err: full, Opening: true}); !errors.As(err, &inner) || err.Error() != full.Error() {
		t.Errorf("%v", err)
	}
}

// A registry is gone after so many images in a row, whatever is copied from elsewhere meanwhile.
func TestCounter(t *testing.T) {
	down := &registries.StatusError{Status: http.StatusBadGateway}
	source := func(host string) Outcome {
		return Outcome{Source: host, Target: "to", Err: &store.SourceError{Err: down, Opening: true}}
	}
	var c Counter
	for n := 1; n < tooMany; n++ {
		if err := c.Count(source("a")); err != nil {
			t.Fatalf("after %d: %v", n, err)
		}
		if err := c.Count(Outcome{Source: "b", Target: "to", Read: true}); err != nil {
			t.Fatal(err)
		}
		if err := c.Count(Outcome{Source: "a", Target: "to", Err: errors.New("a fault of the image")}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Count(source("a")); !Fatal(err) {
		t.Errorf("got %v, expected the end of the run", err)
	}
	// One that was read is not gone.
	c = Counter{}
	for range tooMany - 1 {
		_ = c.Count(source("a"))
	}
	_ = c.Count(Outcome{Source: "a", Target: "to", Read: true})
	if err := c.Count(source("a")); err != nil {
		t.Errorf("counted on: %v", err)
	}
	// A target counts on its own.
	for n := range tooMany {
		if err := c.Count(Outcome{Source: fmt.Sprint("s", n), Target: "to", Err: down}); (err != nil) != (n == tooMany-1) {
			t.Errorf("%d: %v", n, err)
		}
	}
}
