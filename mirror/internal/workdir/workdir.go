// Package workdir has what runs of a mirror leave for each other in the directory of a workspace: the record of what
// was mirrored, and the list of the images that need not be asked for again.
package workdir

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/mirror/internal/nolink"
)

// Dir is the directory of a workspace; empty if there is none. It may be on a medium that others have written: no link
// in it is followed, and only regular files are read.
type Dir string

// maxFile is how many bytes a file of a workspace has at most: one that is larger is neither written nor read.
const maxFile = 256 << 20

// Path is that of a file or directory of the workspace.
func (d Dir) Path(parts ...string) (string, error) { return nolink.Below(string(d), parts...) }

// Read reads a file; nil if there is none.
func (d Dir) Read(parts ...string) ([]byte, error) {
	text, err := nolink.Read(maxFile, string(d), parts...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// Write writes a file, with the directories above it, and returns its path.
func (d Dir) Write(content []byte, parts ...string) (string, error) {
	return d.WriteLines(func(yield func([]byte) bool) { yield(content) }, parts...)
}

// WriteLines is like [Dir.Write], for content that is made while it is written.
func (d Dir) WriteLines(content iter.Seq[[]byte], parts ...string) (_ string, err error) {
	path, err := d.makePath(parts)
	if err != nil {
		return "", err
	}
	f, err := atomicfs.NewFile(path, 0o644)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	w, size := bufio.NewWriter(f), 0
	for line := range content {
		if size += len(line); size > maxFile {
			return "", fmt.Errorf("%s: %w: more than %d bytes: mirror fewer images at once, in a workspace of their own",
				path, fault.ErrLimit, maxFile)
		}
		if _, err := w.Write(line); err != nil {
			return "", err
		}
	}
	if err := w.Flush(); err != nil {
		return "", err
	}
	return path, f.Commit()
}

// Create makes a file that is written as it grows, in place of the one that is there.
func (d Dir) Create(parts ...string) (*os.File, error) {
	path, err := d.makePath(parts)
	if err != nil {
		return nil, err
	}
	if err := atomicfs.CheckFile(path); err != nil {
		return nil, err
	}
	// The file may have another name elsewhere, where its content is to stay.
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
}

// makePath makes the directories above a file, and returns its path.
func (d Dir) makePath(parts []string) (string, error) {
	dir, err := nolink.MakeDir(string(d), parts[:len(parts)-1]...)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, parts[len(parts)-1]), nil
}

// RemoveAll removes a directory with what is in it.
func (d Dir) RemoveAll(parts ...string) error {
	path, err := d.Path(parts...)
	if err != nil {
		return err
	}
	return os.RemoveAll(path)
}
