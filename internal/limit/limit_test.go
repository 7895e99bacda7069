package limit

import (
	"errors"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Only fields that are zero get their defaults.
func TestDefaults(t *testing.T) {
	want := Limits{4 << 30, 8 << 30, 64 << 20, 200_000, 200, 16 << 20}
	if got := (Limits{}).WithDefaults(); got != want {
		t.Errorf("%+v", got)
	}
	set := Limits{1, 2, 3, 4, 5, 6}
	if got := set.WithDefaults(); got != set {
		t.Errorf("%+v", got)
	}
}

// The text of an error names the limit as a command line has it, and its value.
func TestErrors(t *testing.T) {
	err := Errorf(File, 10, "the file %q has %d bytes", "a", 11)
	var limit *Error
	if !errors.As(err, &limit) || limit.Limit != File || limit.Value != 10 || !errors.Is(err, fault.ErrLimit) {
		t.Errorf("%#v", err)
	}
	if want := fault.ErrLimit.Error() + `: the file "a" has 11 bytes (limit 10, max-file-size)`; err.Error() != want {
		t.Errorf("%v", err)
	}
}
