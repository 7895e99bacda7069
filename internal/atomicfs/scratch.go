package atomicfs

import (
	"errors"
	"os"
)

// Scratch is a temporary file for what does not fit into memory. It has no name, so that nothing of it stays whatever
// happens to the process; where an open file cannot be removed it has one until it is closed.
type Scratch struct {
	*os.File
	named bool
}

// NewScratch makes an empty file in dir, or in the system's directory for temporary files if dir is empty. The pattern is
// that of [os.CreateTemp].
func NewScratch(dir, pattern string) (*Scratch, error) {
	f, err := os.CreateTemp(dir, pattern)
	if err != nil {
		return nil, err
	}
	return &Scratch{File: f, named: os.Remove(f.Name()) != nil}, nil
}

// Close gives the file back.
func (s *Scratch) Close() error {
	err := s.File.Close()
	if s.named {
		err = errors.Join(err, os.Remove(s.Name()))
	}
	return err
}
