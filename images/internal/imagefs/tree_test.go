package imagefs

import "testing"

// A name is looked at once with each directory above it, however many upper layers there are.
func TestCovered(t *testing.T) {
	for name, c := range map[string]struct {
		upper           map[string]bool
		removed, opaque string
		want            bool
	}{
		"nothing":            {nil, "-", "-", false},
		"a file":             {map[string]bool{"a/b/c": false}, "-", "-", true},
		"a directory":        {map[string]bool{"a/b/c": true, "a": true}, "-", "-", false},
		"a file above":       {map[string]bool{"a": false}, "-", "-", true},
		"removed":            {nil, "a/b/c", "-", true},
		"removed above":      {nil, "a", "-", true},
		"removed beside":     {nil, "a/b/cc", "-", false},
		"opaque itself":      {nil, "-", "a/b/c", false},
		"opaque above":       {nil, "-", "a/b", true},
		"opaque at the root": {nil, "-", "", true},
	} {
		tree := &Tree{upper: c.upper, removed: map[string]bool{c.removed: true},
			opaque: map[string]bool{c.opaque: true}}
		if got := tree.covered("a/b/c"); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}
