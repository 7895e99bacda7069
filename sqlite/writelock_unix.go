//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// flock takes the lock of an open file until it is closed, and reports whether it has it. Where files have no locks, it
// passes for having it.
func flock(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR)
}

// openNewLock opens the file that stands for a database that is made. It follows no link, and has no content.
func openNewLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}
