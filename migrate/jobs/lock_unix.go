//go:build unix

package jobs

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockName is the file by which a run has a directory of records for itself.
const lockName = ".lock"

// lock takes the directory for this run, as long as the process lives or until it is released.
func lock(dir string) (release func() error, err error) {
	path := filepath.Join(dir, lockName)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o666)
		if err != nil {
			return nil, err
		}
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			f.Close()
			if errors.Is(err, unix.EWOULDBLOCK) {
				return nil, ErrBusy
			}
			return nil, &os.PathError{Op: "lock", Path: path, Err: err}
		}
		// The run that had it before removes the file, perhaps after it was opened here.
		mine, err := f.Stat()
		if there, serr := os.Lstat(path); err == nil && serr == nil && os.SameFile(mine, there) {
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
		}
		f.Close()
	}
}
