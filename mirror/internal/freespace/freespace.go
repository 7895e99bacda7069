// Package freespace tells how much space a file system has left.
package freespace

import (
	"errors"
	"io/fs"
	"path/filepath"
)

// Of returns the bytes that this user can write below a directory, which need not exist yet: then those of the nearest
// directory above it.
func Of(dir string) (int64, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return 0, err
	}
	for {
		free, err := available(dir)
		if up := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && up != dir {
			dir = up
			continue
		}
		return free, err
	}
}
