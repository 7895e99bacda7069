package atomicfs_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

func TestWriteFiles(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(path("b"), []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	before := listing(t, dir)
	contents := func(names ...string) (out []atomicfs.Content) {
		for _, n := range names {
			out = append(out, atomicfs.Content{Path: path(n), Data: []byte("new " + n), Perm: 0o644})
		}
		return out
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := atomicfs.WriteFiles(cancelled, contents("a", "b")); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	for _, bad := range []string{"nosuch/c", "."} {
		if err := atomicfs.WriteFiles(t.Context(), contents("a", "b", bad)); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
	text, err := os.ReadFile(path("b"))
	if after := listing(t, dir); after != before || err != nil || string(text) != "old" {
		t.Errorf("before\n%s\nafter\n%s: %q, %v", before, after, text, err)
	}
	if err := atomicfs.WriteFiles(t.Context(), contents("a", "b")); err != nil {
		t.Fatal(err)
	}
	if got, want := listing(t, dir), ". drwxr-xr-x\na -rw-r--r--\nb -rw-r--r--"; got != want {
		t.Errorf("got\n%s", got)
	}
	for _, n := range []string{"a", "b"} {
		if text, err := os.ReadFile(path(n)); err != nil || string(text) != "new "+n {
			t.Errorf("%s: %q, %v", n, text, err)
		}
	}
}
