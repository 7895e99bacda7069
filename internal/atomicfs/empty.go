package atomicfs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/operator-bindery/bindery/internal/fault"
)

// ErrNotEmpty is the error of [CheckEmpty] about a directory in which something is.
var ErrNotEmpty = fault.Advise(errors.New("must be empty"),
	"name a directory that does not exist, or remove what is in this one")

// CheckEmpty returns an error unless a directory that an output is written to is empty or does not exist. The root of a new
// file system is empty, and so is a directory with what a killed writer has left.
func CheckEmpty(dir string) error {
	if canBeFilled(dir) {
		return nil
	}
	err := checkEmptyBut(dir)
	if errors.Is(err, ErrNotEmpty) {
		return fmt.Errorf("output dir %q %w", dir, ErrNotEmpty)
	}
	return err
}

// checkEmptyBut ignores some names, and says what is there.
func checkEmptyBut(dir string, ignored ...string) error {
	entries, err := os.ReadDir(dir)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return slices.Contains(ignored, e.Name()) })
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("output dir %q: %w", dir, err)
	case len(entries) > 0:
		return fmt.Errorf("output dir %q %w, and has %.200q", dir, ErrNotEmpty, entries[0].Name())
	}
	return nil
}
