package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
)

// The outermost error with a hint is the one that advises, of joined ones the first.
func TestAdvisorOf(t *testing.T) {
	inner := fault.Advise(fault.ErrLimit, "inner")
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"nil":                {nil, ""},
		"none":               {fault.ErrLimit, ""},
		"wrapped":            {fmt.Errorf("x: %w", inner), "inner"},
		"outermost":          {fault.Advise(fmt.Errorf("x: %w", inner), "outer"), "outer"},
		"an empty one":       {fault.Advise(inner, ""), "inner"},
		"the first of those": {errors.Join(errors.New("x"), inner, fault.Advise(errors.New("y"), "second")), "inner"},
	} {
		got := ""
		if a := fault.AdvisorOf(c.err); a != nil {
			got = a.Hint()
		}
		if got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if !errors.Is(inner, fault.ErrLimit) || fault.ClassOf(inner) != fault.Limit || inner.Error() != fault.ErrLimit.Error() {
		t.Error("the error is another one")
	}
}
