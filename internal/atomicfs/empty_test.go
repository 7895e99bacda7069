package atomicfs_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

func TestCheckEmpty(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	for _, path := range []string{dir, filepath.Join(dir, "nosuch")} {
		if err := atomicfs.CheckEmpty(path); err != nil {
			t.Error(err)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := atomicfs.CheckEmpty(dir); !errors.Is(err, atomicfs.ErrNotEmpty) {
		t.Error(err)
	}
	if err := atomicfs.CheckEmpty(file); err == nil || errors.Is(err, atomicfs.ErrNotEmpty) {
		t.Errorf("a file: %v", err)
	}
}
