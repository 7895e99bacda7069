// Package filelock locks open files and directories against other processes, with flock(2). The kernel releases a lock
// when the file is closed, however the process ends, so no lock is ever left behind.
//
// There are file systems without such locks (NFS without its lock service, some FUSE and CI volumes), and systems where the
// call is another one (Windows). The policy for them is the same everywhere:
//
//   - A writer goes on without a lock ([Take], [Lock]): what is written appears by a rename, as a whole, with a lock or
//     without. Of two writers at the same moment the later one wins, where with locks it adds to what the first one has
//     written.
//   - What killed runs have left is not removed ([Try] reports [ErrNoLocks]): whether its owner has ended cannot be known.
package filelock

import (
	"context"
	"errors"
	"os"
	"time"
)

// ErrNoLocks is the error of [Try] where files have no locks.
var ErrNoLocks = errors.New("the file system has no locks")

// Poll is how often [Lock] tries again while another process has the lock.
const Poll = 5 * time.Millisecond

// Try takes the exclusive lock of an open file or directory until it is closed, and reports whether it has it: false and no
// error say that another process has it. It does not wait. Where there are no locks, it fails with [ErrNoLocks].
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

// Take is [Try] for those who go on where there are no locks: it reports true there.
func Take(f *os.File) (ok bool, err error) {
	held, err := Try(f)
	if errors.Is(err, ErrNoLocks) {
		return true, nil
	}
	return held, err
}

// Lock is [Take] until it succeeds or the context ends; then it returns the context's cause.
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
