//go:build unix

package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

// A directory has one lock, which is waited for until the context ends.
func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	first, err := LockDir(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, held := TryDir(dir); held {
		t.Error("it is locked twice")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := LockDir(ended, dir); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of the context: %v", err)
	}
	first.Unlock()
	second, held := TryDir(dir)
	if !held {
		t.Fatal("it is still locked")
	}
	second.Unlock()
	absent := filepath.Join(dir, "absent")
	if _, err := LockDir(t.Context(), absent); err == nil {
		t.Error("no directory: no error")
	}
	if _, held := TryDir(absent); held {
		t.Error("no directory: it is locked")
	}
}
