//go:build unix

package catalogdir

import (
	"errors"
	"os"
	"syscall"
)

// syncDir makes the entries of an open directory durable.
func syncDir(f *os.File) error {
	err := f.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // the file system does not know how, and needs none
	}
	return err
}
