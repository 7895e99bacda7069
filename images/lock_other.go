//go:build !unix

package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

const (
	lockPoll = 20 * time.Millisecond
	lockName = ".bindery-lock"
)

// dirLock is a file that only one process can create. Directories cannot be locked here.
type dirLock struct{ path string }

// lockDir waits for the lock until the context ends. The lock of a killed process stays and must be removed by hand.
func lockDir(ctx context.Context, dir string) (*dirLock, error) {
	path := filepath.Join(dir, lockName)
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err == nil {
			return &dirLock{path}, f.Close()
		}
		if !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrPermission) {
			return nil, fmt.Errorf("locking %s: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for %s (remove it if no other run is active): %w", path, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

// tryLockDir takes the lock only if nobody has it.
func tryLockDir(dir string) (*dirLock, bool) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, false
	}
	f.Close()
	return &dirLock{f.Name()}, true
}

// unlock releases the lock.
func (l *dirLock) unlock() { os.Remove(l.path) }

// ours is true: owners are not known here.
func ours(fs.FileInfo) bool { return true }

// rootOwns is true: owners are not known here.
func rootOwns(fs.FileInfo) bool { return true }

// noWait opens a FIFO without waiting for its other end.
const noWait = 0
