//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// openNewLock opens the empty lock file of a new database. It follows no symbolic link.
func openNewLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}
