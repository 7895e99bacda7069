package edit

import (
	"errors"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// The kinds of problems, for [errors.Is].
var (
	// ErrImageExists is returned for a bundle whose image is already in the catalog.
	ErrImageExists = errors.New("bundle image already added")
	// ErrVersionExists is returned for a bundle whose name already exists in its package.
	ErrVersionExists = errors.New("package and version already added")
	// ErrOverwrite is returned for a bundle that may not be overwritten.
	ErrOverwrite = errors.New("bundle cannot be overwritten")
	// ErrNotFound is returned for a package, channel or bundle that is not in the catalog.
	ErrNotFound = errors.New("not found")
	// ErrDefaultChannel is returned for packages without a default channel, and for edits that would remove it.
	ErrDefaultChannel = errors.New("no default channel")
	// ErrAlpha is returned for features that must be enabled.
	ErrAlpha = errors.New("alpha feature is not enabled")
	// ErrGraph is returned for invalid upgrade graphs: cycles, unreachable bundles, channels without exactly one head.
	ErrGraph = errors.New("invalid upgrade graph")
	// ErrInvalid is returned for bundles and catalogs that break the rules of their format.
	ErrInvalid = fault.ErrInvalid
	// ErrConflict is returned for two catalogs that cannot be merged.
	ErrConflict = errors.New("conflict")
	// ErrLimit is returned for input that exceeds a limit.
	ErrLimit = fault.ErrLimit
)

// Problem is one reason why an edit, or a part of it, is impossible. Fields that do not apply are empty.
type Problem struct {
	Package string `json:"package,omitempty"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	Image   string `json:"image,omitempty"`
	// Message contains opm's text for the problem, if opm has one.
	Message string `json:"message"`
	// Kind is one of the Err variables of this package, or wraps one: compare it with [errors.Is].
	Kind error `json:"-"`
}

func (p Problem) Error() string { return p.Message }

// Object returns the subject of the problem: the smallest part of the catalog that it names.
func (p Problem) Object() string {
	switch {
	case p.Bundle != "" && p.Package != "":
		return p.Package + "/" + p.Bundle
	case p.Bundle != "":
		return p.Bundle
	case p.Channel != "":
		return p.Package + "/" + p.Channel
	case p.Package != "":
		return p.Package
	}
	return p.Image
}

// Unwrap returns the kind of the problem.
func (p Problem) Unwrap() error { return p.Kind }

// Error has every problem that prevented an edit, in the order of the input. [errors.Is] matches each of their kinds.
type Error struct{ problem.List[Problem] }

// ErrorOf returns the error for a list of problems; nil for an empty list.
func ErrorOf(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &Error{problem.List[Problem]{Problems: problems}}
}

// Hint is how to find the names of channels and bundles, if one was not found.
func (e *Error) Hint() string {
	if slices.ContainsFunc(e.Problems, func(p Problem) bool { return p.Channel != "" }) && errors.Is(e, ErrNotFound) {
		return "\"list bundles\" shows the channels and their bundles"
	}
	return ""
}

// OpmMessage returns the problems as opm prints them: several are a list in brackets.
func (e *Error) OpmMessage() string {
	m := e.Lines()
	if len(m) == 1 {
		return m[0]
	}
	return "[" + strings.Join(m, ", ") + "]"
}

// ExitStatus returns opm's exit status for the error: 2 if an image was already added, 3 if a package and version was,
// and 1 otherwise.
func (e *Error) ExitStatus() int {
	switch {
	case errors.Is(e, ErrImageExists):
		return 2
	case errors.Is(e, ErrVersionExists):
		return 3
	}
	return 1
}
