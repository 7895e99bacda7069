package medium_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/medium"
)

func day(n int) time.Time { return time.Date(2026, 8, n, 10, 20, 30, 0, time.UTC) }

// The newest history counts, or the newest from before a day; names with dashes are read, others are passed over.
func TestHistory(t *testing.T) {
	one, two, three := digest.FromString("1"), digest.FromString("2"), digest.FromString("3")
	dir := t.TempDir()
	first, err := (*medium.History)(nil).WriteNext(dir, day(1), map[digest.Digest]string{two: "acme/app", one: ""})
	if err != nil || first != ".history/.history-2026-08-01T10:20:30Z" {
		t.Fatal(first, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, first))
	lines := strings.Fields(string(text))
	if err != nil || len(lines) != 2 || !slices.IsSorted(lines) {
		t.Errorf("%s %v", text, err)
	}
	before, err := medium.ReadHistory(os.DirFS(dir), time.Time{})
	if err != nil || before.Len() != 2 || !before.Time.Equal(day(1)) {
		t.Fatal(before, err)
	}
	if _, err := before.WriteNext(dir, day(3),
		map[digest.Digest]string{three: "acme/app", two: "other"}); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".history-2026-08-02T10-20-30Z": one.String(), ".history-yesterday": "x",
		".history-2026-08-09T10-20-30-02-00": "", "other": "x"} {
		if err := os.WriteFile(filepath.Join(dir, ".history", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		before time.Time
		time   time.Time
		has    []digest.Digest
	}{
		{time.Time{}, day(9).Add(2 * time.Hour), nil},
		{day(9), day(3), []digest.Digest{one, two, three}},
		{day(3), day(2), []digest.Digest{one}},
		{day(2), day(1), []digest.Digest{one, two}},
		{day(1), time.Time{}, nil},
	} {
		h, err := medium.ReadHistory(os.DirFS(dir), c.before)
		if err != nil || !h.Time.Equal(c.time) || h.Len() != len(c.has) {
			t.Errorf("%v: %+v, %v", c.before, h, err)
			continue
		}
		for _, d := range []digest.Digest{one, two, three, "x"} {
			if h.Has(d) != slices.Contains(c.has, d) {
				t.Errorf("%v: %s", c.before, d)
			}
		}
	}
	// Where a blob was first, it is still.
	h, err := medium.ReadHistory(os.DirFS(dir), day(9))
	if err != nil || !slices.Equal(h.Where(two), []string{"acme/app"}) || len(h.Where(one)) != 0 ||
		!slices.Equal(h.Where(three), []string{"acme/app"}) {
		t.Errorf("%+v, %v", h, err)
	}
	if h, err := medium.ReadHistory(os.DirFS(t.TempDir()), time.Time{}); err != nil || h.Len() != 0 {
		t.Error(h, err)
	}
	bad := fstest.MapFS{".history/.history-2026-08-01T10:20:30Z": {Data: []byte(one.String() + "\nx\n")}}
	if _, err := medium.ReadHistory(bad, time.Time{}); !errors.Is(err, fault.ErrInvalid) ||
		!strings.Contains(err.Error(), "line 2") {
		t.Error(err)
	}
}
