//go:build !linux

package catalogdir

import (
	"errors"
	"os"
)

// exchange cannot be done here.
func exchange(*os.Root, string, string) error { return errors.ErrUnsupported }

// renameNoReplace gives something a name that is free.
func renameNoReplace(root *os.Root, from, to string) error { return renameIfFree(root, from, to) }

// hasAttributes reports false: directories are not copied here.
func hasAttributes(*os.Root, string) (bool, error) { return false, nil }
