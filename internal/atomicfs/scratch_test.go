package atomicfs_test

import (
	"os"
	"runtime"
	"testing"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// A temporary file has no name while it is open and leaves nothing behind.
func TestScratch(t *testing.T) {
	dir := t.TempDir()
	s, err := atomicfs.NewScratch(dir, "test-*")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.WriteString("content"); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 && runtime.GOOS != "windows" {
		t.Errorf("it has a name: %v", left)
	}
	b := make([]byte, 7)
	if _, err := s.ReadAt(b, 0); err != nil || string(b) != "content" {
		t.Errorf("got %q, %v", b, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if _, err := atomicfs.NewScratch(dir+"/none", "test-*"); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}
