//go:build unix

package filelock

import (
	"errors"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// flock locks the file without waiting.
func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != unix.EINTR {
			return err
		}
	}
}

// isBusy reports whether another process has the lock.
func isBusy(err error) bool { return errors.Is(err, unix.EWOULDBLOCK) }

// isUnsupported reports whether the file system has no locks. NFS returns EBADF for files that are not open for
// writing: it implements flock(2) with record locks, which need that.
func isUnsupported(err error) bool {
	none := []error{unix.EOPNOTSUPP, unix.ENOTSUP, unix.ENOSYS, unix.ENOLCK, unix.EBADF, unix.EINVAL}
	return slices.ContainsFunc(none, func(no error) bool { return errors.Is(err, no) })
}
