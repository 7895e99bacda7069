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
	return errors.Join(SyncOpenDir(d), d.Close())
}

// SyncOpenDir makes the entries of an open directory durable.
func SyncOpenDir(d *os.File) error {
	err := d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		return nil // the file system does not support syncing directories
	}
	return err
}
