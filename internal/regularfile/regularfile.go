// Package regularfile opens and reads regular files only: a FIFO or a device is an error, where opening it could block.
package regularfile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/internal/fault"
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
		return nil, fmt.Errorf("%s: %w: longer than %d bytes", path, fault.ErrLimit, limit)
	}
	return content, nil
}

// ReadMounted reads a small regular file that the user names. Links are followed: mounted secrets and configurations
// are links.
func ReadMounted(path string) ([]byte, error) { return ReadNamed(path, maxMounted) }

// ReadNamed is ReadMounted for a file of at most limit bytes.
func ReadNamed(path string, limit int64) ([]byte, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return Read(resolved, limit)
}

// OpenNamed opens a file as ReadMounted does, of any size.
func OpenNamed(path string) (*os.File, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil, err
	}
	return Open(resolved)
}

// maxMounted is the maximum size in bytes for ReadMounted.
const maxMounted = 4 << 20

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
