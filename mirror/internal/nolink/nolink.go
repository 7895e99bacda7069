// Package nolink finds files below a directory that other programs, or others, may have filled: it follows no link, so that
// no name leads out of the directory, and tells which files may be changed in place.
package nolink

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// Below returns the path of a file or directory below a directory, which need not exist. What is on the way must be
// directories, and nothing may be a link: a directory that others have made, as that on a medium, leads nowhere else.
func Below(dir string, parts ...string) (string, error) {
	below := filepath.Join(append([]string{"."}, parts...)...)
	if !filepath.IsLocal(below) {
		return "", fmt.Errorf("%w: %.200q is not below %s", fault.ErrInvalid, below, dir)
	}
	path := dir
	names := strings.Split(filepath.ToSlash(below), "/")
	for i, name := range names {
		path = filepath.Join(path, name)
		info, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return filepath.Join(dir, below), nil
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink != 0:
			return "", fmt.Errorf("%w: %s is a link, which is not followed: remove it", fault.ErrInvalid, path)
		case i < len(names)-1 && !info.IsDir():
			return "", fmt.Errorf("%w: %s is not a directory: remove it", fault.ErrInvalid, path)
		}
	}
	return path, nil
}

// MakeDir makes a directory below a directory, with those on the way, as [Below] finds them, and returns its path.
func MakeDir(dir string, parts ...string) (string, error) {
	path, err := Below(dir, parts...)
	if err != nil {
		return "", err
	}
	if info, err := os.Lstat(path); err == nil && !info.IsDir() {
		return "", fmt.Errorf("%w: %s is not a directory: remove it", fault.ErrInvalid, path)
	}
	return path, os.MkdirAll(path, 0o755)
}

// Read reads a regular file of at most limit bytes below a directory, as [Below] finds it.
func Read(limit int64, dir string, parts ...string) ([]byte, error) {
	path, err := Below(dir, parts...)
	if err != nil {
		return nil, err
	}
	return regularfile.Read(path, limit)
}

// FS are the directories and regular files below a directory, as [Below] finds them.
type FS string

// Open opens a file or directory.
func (d FS) Open(name string) (fs.File, error) {
	path, err := Below(string(d), filepath.FromSlash(name))
	if err != nil {
		return nil, err
	}
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err // another run may just make it
	case info.IsDir():
		return os.Open(path)
	}
	return regularfile.Open(path)
}

// CheckOwn returns an error for what must not be changed in place: what is no regular file, and a file that has another
// name elsewhere, where its content would change as well.
func CheckOwn(path string, info fs.FileInfo) error {
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%w: %s is not a regular file: remove it", fault.ErrInvalid, path)
	}
	if n := links(info); n > 1 {
		return fmt.Errorf("%w: %s has %d names (hard links), and is not changed in place: remove this one",
			fault.ErrInvalid, path, n)
	}
	return nil
}
