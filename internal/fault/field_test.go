package fault_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
)

// An error names fields, or what a program calls them. A value with braces is none.
func TestFieldErrors(t *testing.T) {
	asFlag := func(field string) string { return "--" + field + "%s" }
	for name, c := range map[string]struct {
		err          error
		text, flags  string
		class        fault.Class
		isNotExisted bool
	}{
		"a value":  {fault.Fieldf("invalid {Port} value %q", "{Port}%d"), `invalid Port value "{Port}%d"`, `invalid --Port%s value "{Port}%d"`, fault.Usage, false},
		"two":      {fault.Fieldf("{A} has no effect without {B}"), "A has no effect without B", "--A%s has no effect without --B%s", fault.Usage, false},
		"a reason": {fault.Fieldf("{A}: %w", fs.ErrNotExist), "A: file does not exist", "--A%s: file does not exist", fault.Usage, true},
		"a file":   {fault.InField("A", fs.ErrNotExist), "A: file does not exist", "--A%s: file does not exist", 0, true},
	} {
		var e *fault.FieldError
		if !errors.As(fmt.Errorf("x: %w", c.err), &e) || e.Error() != c.text || e.Named(asFlag).Error() != c.flags ||
			fault.ClassOf(e) != c.class || errors.Is(c.err, fs.ErrNotExist) != c.isNotExisted {
			t.Errorf("%s: %q, %q", name, e, e.Named(asFlag))
		}
	}
	if fault.InField("A", nil) != nil {
		t.Error("no error became one")
	}
}
