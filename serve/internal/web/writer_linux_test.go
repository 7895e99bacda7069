package web

import (
	"bytes"
	"log/slog"
	"math"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/declcfg"
)

// Without a directory for temporary files a catalog is kept in memory, if it is small compared with the limit.
func TestContentInMemory(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()+"/none")
	old := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(old)
	blob := func(pkg string, size int) *declcfg.Meta {
		return &declcfg.Meta{Schema: "x", Package: pkg,
			Blob: []byte(`{"schema":"x","package":"` + pkg + `","data":"` + strings.Repeat("a", size) + `"}`)}
	}
	var told bytes.Buffer
	for _, limit := range []int64{math.MaxInt64, 1 << 30} {
		debug.SetMemoryLimit(limit)
		w, err := NewWriter(slog.New(slog.NewTextHandler(&told, nil)))
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range []*declcfg.Meta{blob("b", 10), blob("a", 100<<10)} { // unsorted
			if err := w.Add(b); err != nil {
				t.Fatal(err)
			}
		}
		c, err := w.Finish(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if text, err := c.read(&c.blobs[1]); err != nil || !bytes.Equal(text, blob("b", 10).Blob) {
			t.Errorf("got %s, %v", text, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(told.String(), "kept in memory"); n != 2 {
		t.Errorf("told %d times: %s", n, told.String())
	}
	w, err := NewWriter(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	w.most = 1 << 10
	if err := w.Add(blob("a", 1<<10)); err == nil || !strings.Contains(err.Error(), "quarter of the memory limit") {
		t.Errorf("error %v", err)
	}
	if err := w.Abort(); err != nil {
		t.Error(err)
	}
}
