//go:build unix

package atomicfs_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/internal/atomicfs"
)

// A file is written also where somebody else holds the lock of the directory, as every user can with that for temporary
// files.
func TestDirectoryThatIsLockedForEver(t *testing.T) {
	dir := t.TempDir()
	held, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := unix.Flock(int(held.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- atomicfs.WriteFile(filepath.Join(dir, "a"), []byte("a"), 0o600) }()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		held.Close() // so that the writer ends
		<-done
		t.Error("the writer waits")
	}
}
