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

// Writing succeeds although another process holds the lock of the directory, as any user can with /tmp.
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
		held.Close() // otherwise the writer would wait for it
		<-done
		t.Error("the writer waits")
	}
}
