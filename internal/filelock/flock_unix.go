//go:build unix

package filelock

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// flock takes the lock of the file, and does not wait.
func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}

// isBusy tells whether an error says that another process has the lock.
func isBusy(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }

// isUnsupported tells whether an error says that there are no locks. NFS says EBADF of files that are not open for
// writing, because it makes locks of another kind of it (flock(2)).
func isUnsupported(err error) bool {
	none := []error{unix.EOPNOTSUPP, unix.ENOTSUP, unix.ENOSYS, unix.ENOLCK, unix.EBADF, unix.EINVAL}
	return slices.ContainsFunc(none, func(no error) bool { return errors.Is(err, no) })
}
