package imagefs

import (
	"archive/tar"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/limit"
)

// A reader passes on what is in each layer, in its order, and refuses what is damaged, hostile, or too much of all
// layers together.
func TestReader(t *testing.T) {
	lower := gzipLayer(t, tarOf(t, entry{name: "./", kind: tar.TypeDir}, entry{name: "a", body: "text"},
		entry{name: "l", link: "/etc", kind: tar.TypeSymlink}))
	upper := plainLayer(tarOf(t, entry{name: "./.wh.a"}, entry{name: "b/c", body: "more"}))
	r, s := NewReader(limit.Limits{Entries: 5}), stack(nil, lower, upper)
	var seen []string
	take := func(name string, _ *tar.Header, content io.Reader) error {
		text, err := io.ReadAll(content)
		seen = append(seen, name+"="+string(text))
		return err
	}
	for n := range 2 {
		got, err := r.Read(t.Context(), s, n, take)
		if err != nil || got < 1024 || n == 1 && got != int64(len(upper.content)) {
			t.Errorf("layer %d: %d bytes, %v", n, got, err)
		}
	}
	if want := []string{".=", "a=text", "l=", ".wh.a=", "b/c=more"}; !slices.Equal(seen, want) {
		t.Errorf("%q instead of %q", seen, want)
	}
	if _, err := r.Read(t.Context(), s, 0, take); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("more entries than there may be: %v", err)
	}
	damaged, left := lower, plainLayer(tarOf(t, entry{name: "../x"}))
	damaged.diffID = digest.FromString("another")
	for want, l := range map[error]rawLayer{fault.ErrIntegrity: damaged, fault.ErrInvalid: left} {
		if _, err := NewReader(limit.Limits{}).Read(t.Context(), stack(nil, l), 0, take); !errors.Is(err, want) {
			t.Errorf("%v instead of %v", err, want)
		}
	}
	if _, err := NewReader(limit.Limits{Compressed: 10}).Read(t.Context(), s, 0, take); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("a large layer: %v", err)
	}
	failure := errors.New("enough")
	if _, err := NewReader(limit.Limits{}).Read(t.Context(), s, 0, func(string, *tar.Header, io.Reader) error {
		return failure
	}); !errors.Is(err, failure) {
		t.Errorf("an error of the caller: %v", err)
	}
}
