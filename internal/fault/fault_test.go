package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/operator-bindery/bindery/internal/fault"
)

func TestClassOf(t *testing.T) {
	errConflict := fault.New(fault.Conflict, "conflict")
	for name, c := range map[string]struct {
		err  error
		want fault.Class
	}{
		"nil":                  {nil, 0},
		"no class":             {errors.New("x"), 0},
		"a sentinel":           {fault.ErrLimit, fault.Limit},
		"wrapped":              {fmt.Errorf("a: %w", fmt.Errorf("b: %w", fault.ErrInvalid)), fault.Input},
		"a limit before input": {fmt.Errorf("%w: %w", fault.ErrInvalid, fault.ErrLimit), fault.Limit},
		"joined": {errors.Join(errors.New("x"), fault.New(fault.Network, "n"), fault.ErrInvalid),
			fault.Input},
		"the machine before a limit": {errors.Join(fault.ErrLimit, &fs.PathError{Err: syscall.ENOSPC}), fault.Local},
		"a conflict before all":      {errors.Join(syscall.EIO, fault.ErrLimit, errConflict), fault.Conflict},
	} {
		if got := fault.ClassOf(c.err); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestClip(t *testing.T) {
	for _, c := range []struct {
		s    string
		most int
		want string
	}{{"", 0, ""}, {"abc", 3, "abc"}, {"abcd", 3, "abc..."}, {"aé", 2, "a..."}, {"éé", 1, "..."},
		{"\x80\x80\x80", 2, "..."}} {
		if got := fault.Clip(c.s, c.most); got != c.want {
			t.Errorf("Clip(%q, %d) = %q, want %q", c.s, c.most, got, c.want)
		}
	}
	if got := fault.Quote(strings.Repeat("€", 200)); !utf8.ValidString(got) || len(got) != fault.MaxShort+len(`"..."`) {
		t.Errorf("got %q", got)
	}
}
