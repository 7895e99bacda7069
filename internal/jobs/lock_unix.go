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

// lockName is the file by which a run has a directory of records for itself.
const lockName = ".lock"

// lock takes the directory for this run, as long as the process lives or until it is released.
func lock(dir string) (release func() error, err error) {
	path := filepath.Join(dir, lockName)
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o666)
		if err != nil {
			return nil, err
		}
		if ok, err := filelock.Take(f); !ok {
			return nil, errors.Join(cmp.Or(err, ErrBusy), f.Close())
		}
		// The run that had it before removes the file, perhaps after it was opened here.
		mine, err := f.Stat()
		if there, serr := os.Lstat(path); err == nil && serr == nil && os.SameFile(mine, there) {
			return func() error { return errors.Join(os.Remove(path), f.Close()) }, nil
		}
		f.Close()
	}
}
