package images

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// Only a component ".." leads out of an image, and no path is longer or deeper than a file can be.
func TestCleanPath(t *testing.T) {
	for name, c := range map[string]struct {
		want string
		err  error
	}{
		"/configs":                {"configs", nil},
		"configs/":                {"configs", nil},
		"/":                       {"", nil},
		".":                       {"", nil},
		"/configs..v2":            {"configs..v2", nil},
		"/..configs/a..":          {"..configs/a..", nil},
		"/...":                    {"...", nil},
		"/configs/../etc":         {"", fault.ErrInvalid},
		"..":                      {"", fault.ErrInvalid},
		"/a\nb":                   {"", fault.ErrInvalid},
		strings.Repeat("/a", 256): {strings.Repeat("/a", 256)[1:], nil},
		strings.Repeat("/a", 257): {"", fault.ErrLimit},
		strings.Repeat("/", 4096): {"", fault.ErrLimit},
		strings.Repeat("a", 4096): {strings.Repeat("a", 4096), nil},
		strings.Repeat("a", 4097): {"", fault.ErrLimit},
	} {
		got, err := CleanPath(name)
		if got != c.want || !errors.Is(err, c.err) || len(fmt.Sprint(err)) > 400 {
			t.Errorf("%.100q: got %.100q, %v", name, got, err)
		}
	}
}

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
		tree := &Tree{upper: c.upper, removed: map[string]bool{c.removed: true}, opaque: map[string]bool{c.opaque: true}}
		if got := tree.covered("a/b/c"); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// What a hostile label asks for is refused at once, and an extraction that is cancelled leaves nothing behind.
func TestExtractOfHostilePaths(t *testing.T) {
	f := newFixture(t, plainLayer(tarOf(t, entry{name: "configs/a", body: "x"})))
	for name, wanted := range map[string][]string{
		"a deep path": {strings.Repeat("/a", 40_000)}, "a long path": {strings.Repeat("a", 80_000)}, "many paths": make([]string, 100_000),
	} {
		if _, err := extract(t, f, limit.Limits{}, wanted...); !errors.Is(err, fault.ErrLimit) || len(err.Error()) > 500 {
			t.Errorf("%s: got %.600v", name, err)
		}
	}
	img, err := OpenSource(t.Context(), f, OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer img.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	temp := t.TempDir()
	if _, err := img.Extract(ctx, []string{"configs"}, ExtractOptions{Temp: temp}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
