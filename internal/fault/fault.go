// Package fault holds what all errors of the project share: the sentinel errors that many packages return, the classes
// that decide how a command reports an error, and the shortening of outside text in messages.
//
// A package exports a sentinel under its own name (var ErrLimit = fault.ErrLimit), so that a caller needs no internal
// package. An error carries a class by wrapping a sentinel made with [New], or by a method ErrorClass.
package fault

import (
	"errors"
	"slices"
	"syscall"
)

// Class says what kind of thing went wrong.
type Class int

// The classes. Their numbers are part of the JSON form of an error: scripts rely on them.
const (
	Usage     Class = 2 // the command line itself
	Input     Class = 3 // a file, catalog, database or image that breaks a rule
	Network   Class = 4 // a registry, or the way to it
	Integrity Class = 5 // content that does not match its digest, size or checksum
	Limit     Class = 6 // more than a limit allows
	Local     Class = 7 // the local machine: files, permissions, space, ports
	Conflict  Class = 8 // something has changed in the meantime
)

// Sentinel errors of several packages.
var (
	// ErrLimit is the class of errors about input that is larger, deeper or longer than a limit allows.
	ErrLimit = New(Limit, "limit exceeded")
	// ErrInvalid is the class of errors about input that breaks a rule of its format.
	ErrInvalid = New(Input, "invalid")
	// ErrIntegrity is the class of errors about content that is not what its digest or size says.
	ErrIntegrity = New(Integrity, "integrity")
	// ErrRegistry is the class of errors of registries, and of the way to them.
	ErrRegistry = New(Network, "registry")
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

// precedence is the order in which [ClassOf] decides among several classes.
var precedence = []Class{Conflict, Usage, Limit, Integrity, Local, Input, Network}

// exhausted are the errors of a machine that lacks something. They are not the input's fault, whatever was being read.
var exhausted = []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOSPC, syscall.EIO}

// ClassOf returns the class of an error, 0 if no error in its tree has one. Of several classes the one that explains
// most wins: a conflict, what the machine lacks, then usage, limit, integrity, local, input, network.
func ClassOf(err error) Class {
	found := map[Class]bool{}
	collect(err, found)
	if !found[Conflict] && slices.ContainsFunc(exhausted, func(e error) bool { return errors.Is(err, e) }) {
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
