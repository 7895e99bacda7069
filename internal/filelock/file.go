package filelock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// File is an exclusive lock by a file that is there for the lock alone, and only while somebody has or wants it.
type File struct{ f *os.File }

// LockFile waits for the lock by the file at path, which it makes, until the context ends. The directory must exist. On
// file systems without locks it succeeds without one.
func LockFile(ctx context.Context, path string) (*File, error) {
	for {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|noFollow, 0o600)
		if err != nil {
			return nil, err
		}
		if err := Lock(ctx, f); err != nil {
			f.Close()
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, err)
		}
		// Its last owner may have removed the file that this process has waited for.
		mine, err := f.Stat()
		if err == nil {
			var there fs.FileInfo
			if there, err = os.Lstat(path); err == nil && os.SameFile(mine, there) {
				return &File{f}, nil
			}
		}
		f.Close()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
}

// Unlock removes the file and releases the lock.
func (l *File) Unlock() {
	_ = os.Remove(l.f.Name()) // where it cannot be removed, it stays, and locks again
	l.f.Close()
}
