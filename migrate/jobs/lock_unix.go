//go:build unix

package jobs

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/internal/filelock"
)

// lockName is the lock file in a directory of records; that of a part has its name behind.
const lockName = ".lock"

// lock locks the directory, for a part unless it is empty, until release is called or the process ends.
func lock(dir, part string) (release func() error, err error) {
	path := filepath.Join(dir, lockName)
	if part != "" {
		path += "-" + part
	}
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o666)
		if err != nil {
			return nil, err
		}
		if ok, err := filelock.Take(f); !ok {
			return nil, errors.Join(cmp.Or(err, ErrBusy), f.Close())
		}
		// The previous run removes the file, possibly after it was opened here.
		mine, err := f.Stat()
		if there, serr := os.Lstat(path); err == nil && serr == nil && os.SameFile(mine, there) {
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
		}
		f.Close()
	}
}
