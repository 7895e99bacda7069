package atomicfs

import (
	"errors"
	"os"
)

// Scratch is a temporary file for data that does not fit into memory. It has no name, so that it disappears with the
// process in any case. On systems that cannot remove an open file it has a name until it is closed.
type Scratch struct {
	*os.File
	named bool
}

// NewScratch creates an empty file in dir, or in the system's temporary directory if dir is empty. The pattern is that
// of [os.CreateTemp].
func NewScratch(dir, pattern string) (*Scratch, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return &Scratch{File: f, named: os.Remove(f.Name()) != nil}, nil
}

// Close closes and removes the file.
func (s *Scratch) Close() error {
	err := s.File.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}
