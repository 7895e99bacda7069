package atomicfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrNotEmpty is the error of [CheckEmpty] about a directory in which something is.
var ErrNotEmpty = errors.New("must be empty")

// CheckEmpty returns an error unless a directory that an output is written to is empty or does not exist.
func CheckEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("output dir %q: %w", dir, err)
	case len(entries) > 0:
		return fmt.Errorf("output dir %q %w", dir, ErrNotEmpty)
	}
	return nil
}
