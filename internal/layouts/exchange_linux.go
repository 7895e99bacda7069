package layouts

import (
	"errors"

	"golang.org/x/sys/unix"
)

// errNotEmpty is the error of a rename onto a directory that is not empty.
const errNotEmpty = unix.ENOTEMPTY

// exchange swaps two directories in one step.
func exchange(a, b string) error {
	err := unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) {
		return exchangeByRenames(a, b)
	}
	return err
}
