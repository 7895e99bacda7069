//go:build unix

package images

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// dirLock is an exclusive lock on a directory itself, so that no lock file is left in it.
type dirLock struct{ f *os.File }

// lockDir waits for the lock until the context ends. Where there are no locks it goes on without: see package filelock.
func lockDir(ctx context.Context, dir string) (*dirLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(ctx, f); err != nil {
		f.Close()
		return nil, fmt.Errorf("waiting for the lock of %s: %w", dir, err)
	}
	return &dirLock{f}, nil
}

// tryLockDir takes the lock only if no other process has it. Where there are no locks it fails.
func tryLockDir(dir string) (*dirLock, bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	if held, _ := filelock.Try(f); !held {
		f.Close()
		return nil, false
	}
	return &dirLock{f}, true
}

// unlock releases the lock.
func (l *dirLock) unlock() { l.f.Close() }

// ours tells whether a file belongs to the user of this process.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid())
}

// rootOwns tells whether a file belongs to root.
func rootOwns(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Uid == 0
}

// noWait opens a FIFO without waiting for its other end.
const noWait = syscall.O_NONBLOCK
