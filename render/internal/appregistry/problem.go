package appregistry

import (
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

var (
	// ErrInvalid is the class of errors about invalid package manifests.
	ErrInvalid = fault.New(fault.Input, "invalid package manifests")
	// ErrLimit is the class of errors about package manifests that exceed a limit.
	ErrLimit = fault.ErrLimit
)

// Problem makes a package, or all packages, unreadable. Its place is relative to the root; Err is [ErrInvalid] or
// [ErrLimit].
type Problem = problem.Problem

// Error has all problems: first those without a package, then by package.
type Error = problem.List[Problem]
