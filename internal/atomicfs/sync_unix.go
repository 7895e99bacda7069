//go:build unix

package atomicfs

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // the file system does not know how, and needs none
	}
	return errors.Join(err, d.Close())
}

// tryLock takes the lock of an open file or directory, until it is closed, if nobody else has it. On a file system
// without locks it reports false: nothing is taken for stale there.
func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil
}

// lock waits for the lock of an open directory and takes it, until it is closed. It reports false where there are no
// locks.
func lock(f *os.File) bool {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if err != unix.EINTR {
			return err == nil
		}
	}
}
