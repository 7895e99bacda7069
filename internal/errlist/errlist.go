// Package errlist joins errors of which there may be hundreds of thousands.
package errlist

import (
	"errors"
	"fmt"
)

// Limits of a joined message: it must be readable and bounded in memory.
const (
	maxErrors     = 100
	maxErrorBytes = 64 << 10
)

// List collects errors: it keeps the first ones and counts the rest. The zero value is an empty list.
type List struct {
	kept  []error
	bytes int
	more  int
}

// full reports whether further errors are only counted.
func (s *List) full() bool { return len(s.kept) >= maxErrors || s.bytes >= maxErrorBytes }

// Add calls err and keeps the error, or counts it if the list is full.
func (s *List) Add(err func() error) {
	if s.full() {
		s.more++
		return
	}
	e := err()
	s.kept = append(s.kept, e)
	s.bytes += len(e.Error())
}

// Join returns the errors as one; nil if there are none. what names the subject of the errors that were only counted.
func (s *List) Join(what string) error {
	if s.more > 0 {
		return errors.Join(append(s.kept, fmt.Errorf("... and %d more %s", s.more, what))...)
	}
	return errors.Join(s.kept...)
}
