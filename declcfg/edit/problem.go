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
	// ErrImageExists is about a bundle whose image is in the catalog already.
	ErrImageExists = errors.New("bundle image already added")
	// ErrVersionExists is about a bundle whose package has one of its name already.
	ErrVersionExists = errors.New("package and version already added")
	// ErrOverwrite is about a bundle that may not be overwritten.
	ErrOverwrite = errors.New("bundle cannot be overwritten")
	// ErrNotFound is about a package, channel or bundle that is not in the catalog.
	ErrNotFound = errors.New("not found")
	// ErrDefaultChannel is about packages without a default channel, and edits that would take it away.
	ErrDefaultChannel = errors.New("no default channel")
	// ErrAlpha is about features that have to be asked for.
	ErrAlpha = errors.New("alpha feature is not enabled")
	// ErrGraph is about upgrade edges: cycles, bundles that nothing leads to, channels without one head.
	ErrGraph = errors.New("invalid upgrade graph")
	// ErrInvalid is about bundles and catalogs that break the rules of their format.
	ErrInvalid = fault.ErrInvalid
	// ErrConflict is about two catalogs that do not go together.
	ErrConflict = errors.New("conflict")
	// ErrLimit is about input that is larger than any real one.
	ErrLimit = fault.ErrLimit
)

// Problem is one reason why an edit, or a part of it, cannot be done. Fields that do not apply are empty.
type Problem struct {
	Package string `json:"package,omitempty"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	Image   string `json:"image,omitempty"`
	// Message holds the stable text that opm gives for the problem, if opm knows it.
	Message string `json:"message"`
	// Kind is one of the Err variables of this package.
	Kind error `json:"-"`
}

func (p *Problem) Error() string { return p.Message }

// Unwrap returns the kind of the problem.
func (p *Problem) Unwrap() error { return p.Kind }

// Error is every problem that kept an edit from being done, in the order of the input. It is, by [errors.Is], each of
// their kinds.
type Error struct{ Problems []Problem }

// Error returns the problems, one a line.
func (e *Error) Error() string { return strings.Join(e.messages(), "\n") }

// OpmMessage returns the problems as opm prints them: several are a list in brackets.
func (e *Error) OpmMessage() string {
	m := e.messages()
	if len(m) == 1 {
		return m[0]
	}
	return "[" + strings.Join(m, ", ") + "]"
}

// maxMessages bounds the messages of an error.
const maxMessages = 100

// messages are the messages, each once: the first ones, and how many more there are.
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

// ExitStatus is the exit status that opm has for the error: 2 if an image was added already, 3 if a package and version
// was, and 1 otherwise.
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

// asError is the error for a list of problems; nil for none.
func asError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return &Error{problems}
}
