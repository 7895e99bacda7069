//go:build unix

package atomicfs

import (
	"errors"
	"os"
	"syscall"
	"time"

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

// How long, and how often, a writer tries to get the lock of a directory.
const (
	lockWait = time.Second
	lockPoll = 5 * time.Millisecond
)

// lock takes the lock of an open directory, until it is closed. Other writers hold it for a moment only; but every user who
// can read the directory can hold it for ever, so it is not waited for longer than [lockWait]. It reports false if the lock
// could not be had, also where there are no locks.
func lock(f *os.File) bool {
	for end := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil || err != unix.EINTR && err != unix.EWOULDBLOCK || time.Now().After(end) {
			return err == nil
		}
	}
}
