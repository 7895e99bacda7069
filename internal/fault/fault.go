// Package fault has the parts of errors that the whole project shares: sentinel errors of several packages, the classes
// that decide on the exit status and JSON form of an error, and functions that shorten quoted input in messages.
//
// A package exports a sentinel under its own name (var ErrLimit = fault.ErrLimit), so that callers need no internal
// package. An error has a class if it wraps a sentinel from [New] or has a method ErrorClass.
package fault

import (
	"errors"
	"slices"
	"syscall"
)

// Class is the kind of an error.
type Class int

// The classes. Their numbers are in the JSON form of errors, which scripts rely on.
const (
	Usage     Class = 2 // the command line itself
	Input     Class = 3 // a file, catalog, database or image breaks a rule
	Network   Class = 4 // a registry or the connection to it
	Integrity Class = 5 // content does not match its digest, size or checksum
	Limit     Class = 6 // a limit is exceeded
	Local     Class = 7 // the local machine: files, permissions, space, ports
	Conflict  Class = 8 // something changed in the meantime
	Bug       Class = 9 // the program itself
)

// Sentinel errors of several packages.
var (
	// ErrLimit is the class of errors about input that exceeds a limit.
	ErrLimit = New(Limit, "limit exceeded")
	// ErrInvalid is the class of errors about input that breaks a rule of its format.
	ErrInvalid = New(Input, "invalid")
	// ErrIntegrity is the class of errors about content that does not match its digest or size.
	ErrIntegrity = New(Integrity, "integrity")
	// ErrRegistry is the class of errors of registries and of connections to them.
	ErrRegistry = New(Network, "registry")
	// ErrServer is the class of errors of other servers, such as those of update graphs.
	ErrServer = New(Network, "server")
)

// Classed is an error with a class.
type Classed interface {
	error
	ErrorClass() Class
}

type sentinel struct {
	text  string
	class Class
}

func (s *sentinel) Error() string     { return s.text }
func (s *sentinel) ErrorClass() Class { return s.class }

// New returns a sentinel error of a class. Each call returns a distinct error.
func New(class Class, text string) error { return &sentinel{text, class} }

// precedence is the order in which [ClassOf] chooses among several classes.
var precedence = []Class{Bug, Conflict, Usage, Limit, Integrity, Local, Input, Network}

// exhausted are errors about resources of the machine. They are never the fault of the input.
var exhausted = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EIO}

// ClassOf returns the class of an error, 0 if no error in its tree has one. Of several classes it returns the one that
// explains most: a bug, conflict, exhausted resources, then usage, limit, integrity, local, input, network.
func ClassOf(err error) Class {
	found := map[Class]bool{}
	collect(err, found)
	if !found[Bug] && !found[Conflict] && slices.ContainsFunc(exhausted, func(e error) bool { return errors.Is(err, e) }) {
		return Local
	}
	for _, class := range precedence {
		if found[class] {
			return class
		}
	}
	return 0
}

func collect(err error, found map[Class]bool) {
	if e, ok := err.(Classed); ok {
		found[e.ErrorClass()] = true
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		collect(e.Unwrap(), found)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			collect(err, found)
		}
	}
}
