// Package regularfile opens and reads files. What images, archives, media and workspaces have is read from regular files
// only: a FIFO or a device is an error, where opening it could block. What the user names is opened as it is named
// ([OpenNamed] and those below it).
package regularfile

import (
	"fmt"
	"io"
	"os"
)

// Read reads a regular file of at most limit bytes; other kinds of files are an error.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var content []byte
	if info.Size() <= limit {
		content, err = io.ReadAll(io.LimitReader(f, limit+1)) // it may grow
	}
	if err != nil {
		return nil, err
	}
	if info.Size() > limit || int64(len(content)) > limit {
		return nil, longer(path, limit)
	}
	return content, nil
}

// Open opens a regular file. Anything else is an error, also a symbolic link.
func Open(path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}
