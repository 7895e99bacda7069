//go:build unix

package catalogdir

import (
	"errors"
	"os"
	"syscall"
)

// flock takes the lock of an open file until it is closed, and reports whether it has it. Where files have no locks, it
// passes for having it: whoever comes second is told by the files that are not any more what was read.
func flock(f *os.File) bool {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR)
}
