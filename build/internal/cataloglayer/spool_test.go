package cataloglayer

import (
	"io"
	"os"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/layers"
)

func TestEntrySpool(t *testing.T) {
	dir := t.TempDir()
	a := newEntrySpool(dir)
	var all []layers.Entry
	want := map[string]string{"cache/a": "first", "cache/b": "", "cache/c": strings.Repeat("third", 100_000)}
	for name, text := range want {
		moved, err := a.addEntries(t.Context(),
			[]layers.Entry{layers.Dir("cache", 0o755), layers.Bytes(name, 0o644, []byte(text))})
		if err != nil {
			t.Fatal(err)
		}
		if moved[0].Kind != layers.KindDir || moved[1].Name != name || moved[1].Size != int64(len(text)) {
			t.Errorf("%+v", moved)
		}
		all = append(all, moved[1])
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("in the directory: %v, %v", left, err)
	}
	for _, e := range all {
		r, err := e.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || string(got) != want[e.Name] {
			t.Errorf("%s: %d bytes, %v", e.Name, len(got), err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := a.s.ReadAt(make([]byte, 1), 0); err == nil {
		t.Error("the spool is still open")
	}
	short := layers.Bytes("x", 0o644, []byte("short"))
	short.Size++
	if _, err := newEntrySpool(dir).addEntries(t.Context(), []layers.Entry{short}); err == nil {
		t.Error("a file of another length was taken")
	}
}
