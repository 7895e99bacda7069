package errlist_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/errlist"
)

func TestList(t *testing.T) {
	var l errlist.List
	if l.Join("errors") != nil {
		t.Error("an empty list is an error")
	}
	first, made := errors.New("first"), 0
	l.Add(func() error { return first })
	for i := range 1000 {
		l.Add(func() error {
			made++
			return fmt.Errorf("error %d", i)
		})
	}
	err := l.Join("errors")
	if !errors.Is(err, first) || made != 99 || !strings.HasSuffix(err.Error(), "error 98\n... and 901 more errors") {
		t.Errorf("%d were made: %v", made, err)
	}
}

func TestListOfLongErrors(t *testing.T) {
	var l errlist.List
	for range 1000 {
		l.Add(func() error { return errors.New(strings.Repeat("x", 10<<10)) })
	}
	if n := len(l.Join("errors").Error()); n > 100<<10 {
		t.Errorf("%d bytes", n)
	}
}
