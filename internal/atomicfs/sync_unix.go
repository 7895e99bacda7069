//go:build unix

package atomicfs

import (
	"errors"
	"os"
	"syscall"
)

// SyncDir makes the entries of a directory durable.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil // the file system does not know how, and needs none
	}
	return errors.Join(err, d.Close())
}
