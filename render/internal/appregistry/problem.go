package appregistry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
)

var (
	// ErrInvalid is the class of errors about invalid package manifests.
	ErrInvalid = fault.New(fault.Input, "invalid package manifests")
	// ErrLimit is the class of errors about package manifests that exceed a limit.
	ErrLimit = fault.ErrLimit
)

// Problem makes a package, or all packages, unreadable.
type Problem struct {
	// Position is relative to the root; its file may be empty and its line 0.
	declcfg.Position
	// Package is empty if the problem is not about one package.
	Package string
	Message string
	// Kind is [ErrInvalid] or [ErrLimit].
	Kind error
}

// String is "file:line: message".
func (p Problem) String() string {
	if p.File == "" {
		return p.Message
	}
	return p.Position.String() + ": " + p.Message
}

// Error has all problems: first those without a package, then by package.
type Error struct{ Problems []Problem }

// Error returns the problems, one per line.
func (e *Error) Error() string {
	const most = 100
	var lines []string
	for i, p := range e.Problems {
		if i == most {
			lines = append(lines, fmt.Sprintf("... and %d more problems", len(e.Problems)-most))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the kind of the error: [ErrLimit] if a limit is among the problems, else [ErrInvalid].
func (e *Error) Unwrap() error {
	if slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Kind == ErrLimit }) {
		return ErrLimit
	}
	return ErrInvalid
}
