// Package errlist joins errors of which there may be hundreds of thousands.
package errlist

import (
	"errors"
	"fmt"
)

// What is kept: a message is to be read, and made in bounded memory.
const (
	maxErrors     = 100
	maxErrorBytes = 64 << 10
)

// List collects errors, of which it keeps the first ones and counts the others. The zero value is an empty list.
type List struct {
	kept  []error
	bytes int
	more  int
}

// full tells whether further errors are counted only.
func (s *List) full() bool { return len(s.kept) >= maxErrors || s.bytes >= maxErrorBytes }

// Add keeps or counts an error, which is made only if it is kept.
func (s *List) Add(err func() error) {
	if s.full() {
		s.more++
		return
	}
	e := err()
	s.kept = append(s.kept, e)
	s.bytes += len(e.Error())
}

// Join returns the errors as one, nil if there are none. What is what the others are about.
func (s *List) Join(what string) error {
	if s.more > 0 {
		return errors.Join(append(s.kept, fmt.Errorf("... and %d more %s", s.more, what))...)
	}
	return errors.Join(s.kept...)
}
