package edit

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
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
	// Kind is one of the Err variables of this package.
	Kind error `json:"-"`
}

func (p *Problem) Error() string { return p.Message }

// Unwrap returns the kind of the problem.
func (p *Problem) Unwrap() error { return p.Kind }

// Error has every problem that prevented an edit, in the order of the input. [errors.Is] matches each of their kinds.
type Error struct{ Problems []Problem }

// Error returns the problems, one per line.
func (e *Error) Error() string { return strings.Join(e.messages(), "\n") }

// OpmMessage returns the problems as opm prints them: several are a list in brackets.
func (e *Error) OpmMessage() string {
	m := e.messages()
	if len(m) == 1 {
		return m[0]
	}
	return "[" + strings.Join(m, ", ") + "]"
}

// maxMessages is the maximum number of messages in an error.
const maxMessages = 100

// messages returns the first distinct messages and the number of others.
func (e *Error) messages() []string {
	seen := map[string]bool{}
	var out []string
	for _, p := range e.Problems {
		if !seen[p.Message] {
			seen[p.Message] = true
			out = append(out, p.Message)
		}
	}
	if more := len(out) - maxMessages; more > 0 {
		out = append(out[:maxMessages:maxMessages], fmt.Sprintf("... and %d more problems", more))
	}
	return out
}

// Unwrap returns the problems.
func (e *Error) Unwrap() []error {
	out := make([]error, len(e.Problems))
	for i := range e.Problems {
		out[i] = &e.Problems[i]
	}
	return out
}

// ExitStatus returns opm's exit status for the error: 2 if an image was already added, 3 if a package and version was,
// and 1 otherwise.
func (e *Error) ExitStatus() int {
	is := func(kind error) bool {
		return slices.ContainsFunc(e.Problems, func(p Problem) bool { return errors.Is(p.Kind, kind) })
	}
	switch {
	case is(ErrImageExists):
		return 2
	case is(ErrVersionExists):
		return 3
	}
	return 1
}

// asError returns the error for a list of problems; nil for an empty list.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &Error{problems}
}
