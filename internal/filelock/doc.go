// Package filelock locks open files and directories against other processes, with flock(2). The kernel releases a lock
// when the file is closed, however the process ends, so no lock is ever left behind.
//
// Some file systems have no such locks (NFS without its lock service, some FUSE and CI volumes), and Windows has a
// different call, which is not used. The policy without locks is the same everywhere:
//
//   - A writer proceeds without a lock ([Take], [Lock]): its output appears atomically by a rename in any case. Of two
//     concurrent writers the later one wins; with locks it would add to the first one's result.
//   - Leftovers of killed processes are not removed ([Try] returns [ErrNoLocks]), because it is unknown whether their
//     writer has ended.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrNoLocks is returned by [Try] on file systems without locks.
var ErrNoLocks = errors.New("the file system has no locks")

// Poll is the interval at which [Lock] tries again.
const Poll = 5 * time.Millisecond

// Try locks an open file or directory exclusively until it is closed. It does not wait: held is false if another
// process has the lock. On file systems without locks it fails with [ErrNoLocks].
func Try(f *os.File) (held bool, err error) {
	err = flock(f)
	switch {
	case err == nil:
		return true, nil
	case isBusy(err):
		return false, nil
	case isUnsupported(err):
		return false, ErrNoLocks
	}
	return false, &os.PathError{Op: "lock", Path: f.Name(), Err: err}
}

// Take works like [Try], but reports true on file systems without locks.
func Take(f *os.File) (ok bool, err error) {
	held, err := Try(f)
	if errors.Is(err, ErrNoLocks) {
		return true, nil
	}
	return held, err
}

// Lock repeats [Take] until it succeeds or the context ends; it then returns the context's cause.
func Lock(ctx context.Context, f *os.File) error {
	for {
		if ok, err := Take(f); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(Poll):
		}
	}
}
