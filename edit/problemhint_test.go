package edit_test

import (
	"testing"

	"github.com/operator-bindery/bindery/edit"
)

// An error about a channel that is not there says how channels are found; a problem is about the smallest part that it names.
func TestHintAndObjectOfProblems(t *testing.T) {
	for _, c := range []struct {
		p            edit.Problem
		object, hint string
	}{
		{edit.Problem{Package: "p", Channel: "c", Kind: edit.ErrNotFound}, "p/c", `"list bundles" shows the channels and their bundles`},
		{edit.Problem{Package: "p", Channel: "c", Bundle: "b", Kind: edit.ErrInvalid}, "p/b", ""},
		{edit.Problem{Package: "p", Kind: edit.ErrNotFound}, "p", ""},
		{edit.Problem{Bundle: "b", Image: "i"}, "b", ""},
		{edit.Problem{Image: "i"}, "i", ""},
	} {
		if hint := edit.ErrorOf([]edit.Problem{c.p}).(*edit.Error).Hint(); c.p.Object() != c.object || hint != c.hint {
			t.Errorf("%+v: %q, %q", c.p, c.p.Object(), hint)
		}
	}
}
