package imagefs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/internal/fault"
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
		tree := &Tree{upper: c.upper, removed: map[string]bool{c.removed: true},
			opaque: map[string]bool{c.opaque: true}}
		if got := tree.covered("a/b/c"); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// A bundle has several layers of a few hundred bytes, whose memory is taken as often.
func TestDecompressRoom(t *testing.T) {
	for _, c := range []struct {
		name string
		size int64
		want int
	}{
		{"a small layer takes its own size", 1000, 1000},
		{"a large layer", 1 << 30, 128 << 10},
		{"a size that is not known", -1, 128 << 10},
		{"an empty layer can be looked into", 0, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := Decompress(bytes.NewReader(nil), v1.MediaTypeImageLayer, c.size)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.(*wholeStream).below.(*bufio.Reader).Size(); got != c.want {
				t.Errorf("room for %d bytes, want %d", got, c.want)
			}
		})
	}
}
