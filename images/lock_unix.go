//go:build unix

package images

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// lockPoll is how often a held lock is tried again.
const lockPoll = 5 * time.Millisecond

// dirLock is an exclusive lock on a directory itself, so that no lock file is left in it. The kernel releases it when
// the process ends, however it ends.
type dirLock struct{ f *os.File }

// lockDir waits for the lock until the context ends.
func lockDir(ctx context.Context, dir string) (*dirLock, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return &dirLock{f}, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			f.Close()
			return nil, fmt.Errorf("locking %s: %w", dir, err)
		}
		select {
		case <-ctx.Done():
			f.Close()
			return nil, fmt.Errorf("waiting for the lock of %s: %w", dir, context.Cause(ctx))
		case <-time.After(lockPoll):
		}
	}
}

// tryLockDir takes the lock only if nobody has it.
func tryLockDir(dir string) (*dirLock, bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		return nil, false
	}
	return &dirLock{f}, true
}

// unlock releases the lock.
func (l *dirLock) unlock() { l.f.Close() }

// claim marks a file as being written by this process, until it is closed.
func claim(f *os.File) { _ = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) }

// abandoned tells whether the process that claimed a file is gone. The claim passes to the caller.
func abandoned(f *os.File) bool {
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

// ours tells whether a file belongs to the user of this process.
func ours(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int64(stat.Uid) == int64(os.Geteuid())
}

// noWait opens a FIFO without waiting for its other end.
const noWait = syscall.O_NONBLOCK
