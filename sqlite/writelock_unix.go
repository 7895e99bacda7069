//go:build unix

package sqlite

import (
	"os"
	"syscall"
)

// openNewLock opens the file that stands for a database that is made. It follows no link, and has no content.
func openNewLock(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0o600)
}
