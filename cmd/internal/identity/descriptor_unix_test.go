//go:build unix

package identity

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A descriptor is read once, and its token is kept.
func TestDescriptor(t *testing.T) {
	token := newTokens(t).of("jane", time.Hour)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(token + "\n"); err != nil {
		t.Fatal(err)
	}
	w.Close()
	n, err := unix.Dup(int(r.Fd())) // without close-on-exec, as one that is inherited
	if err != nil {
		t.Fatal(err)
	}
	s, err := Options{Token: fmt.Sprintf("fd:%d", n)}.Find(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if got, err := s.Token(t.Context()); err != nil || got != token {
			t.Error(got, err)
		}
	}
}
