package imageset

import (
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// maxProblems is how many problems of one file are kept.
const maxProblems = 100

// Problem is one thing that is wrong in a configuration file, or to be known about it.
type Problem struct {
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 if the problem concerns the whole file or the position is unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Field is the path of the value, such as mirror.operators[0].packages[2].minVersion.
	Field string `json:"field,omitempty"`
	// Text says what is wrong, Fix what to write instead; Fix may be empty.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`

	tagless bool
}

// Error returns FILE:LINE:COLUMN: FIELD: TEXT (FIX).
func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	if b.Len() > 0 {
		b.WriteString(": ")
	}
	if p.Field != "" {
		b.WriteString(p.Field + ": ")
	}
	b.WriteString(p.Text)
	if p.Fix != "" {
		b.WriteString(" (" + p.Fix + ")")
	}
	return b.String()
}

// Error has the problems of one file in the order of its lines, the first hundred of them.
type Error struct {
	Problems []Problem
	// More is the number of other problems.
	More int
}

// Error returns one problem per line.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for i := range e.Problems {
		lines = append(lines, e.Problems[i].Error())
	}
	if e.More > 0 {
		lines = append(lines, fmt.Sprintf("and %d more problems", e.More))
	}
	return strings.Join(lines, "\n")
}

// ErrorClass returns the class of input that breaks a rule.
func (e *Error) ErrorClass() fault.Class { return fault.Input }

// Unwrap returns [fault.ErrInvalid].
func (e *Error) Unwrap() error { return fault.ErrInvalid }

// OnlyTagless reports whether all problems are additional images without tag and digest. oc-mirror finds these while it
// collects images and ends with the status of additional images, 8, in place of that of configurations, 1.
func (e *Error) OnlyTagless() bool {
	for i := range e.Problems {
		if !e.Problems[i].tagless {
			return false
		}
	}
	return e.More == 0 && len(e.Problems) > 0
}
