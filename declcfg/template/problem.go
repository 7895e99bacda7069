package template

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Problem is one thing that is wrong with a template.
type Problem struct {
	// Position is that of the very value that is wrong.
	Position declcfg.Position
	Message  string
	// Err is what a [RenderFunc] returned, or what else is behind the problem; nil if that is only the template.
	Err error
}

// Error is every problem of a template, by line.
type Error struct {
	Problems []Problem

	opm string
}

// Error returns the problems, one a line, each with file and line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		if lines[i] = p.Message; p.Position.File != "" {
			lines[i] = p.Position.String() + ": " + p.Message
		}
	}
	if len(lines) == 1 {
		return lines[0]
	}
	return fmt.Sprintf("%d problems:\n%s", len(lines), strings.Join(lines, "\n"))
}

// OpmMessage returns the message that opm gives for the template: it knows the first problem only.
func (e *Error) OpmMessage() string { return e.opm }

// Unwrap returns the errors behind the problems.
func (e *Error) Unwrap() []error {
	var errs []error
	for _, p := range e.Problems {
		if p.Err != nil {
			errs = append(errs, p.Err)
		}
	}
	return errs
}

// source is the text of a template.
type source struct {
	name   string
	line   int // at which the document starts
	data   []byte
	isJSON bool
}

// report collects problems.
type report struct {
	source   *source
	problems []problem
	more     int    // problems that were counted only
	prefix   string // of opm's message
	locator  *canon.Locator
	located  int // look-ups
}

// maxProblems is how many problems an error holds.
const maxProblems = declcfg.MaxProblems

// problem is a [Problem] that has a path in place of a line, and opm's words.
type problem struct {
	Problem
	path []any
	opm  string
}

// add notes a problem of the value at a path. opm is what comes before the message in opm's, which is otherwise the same.
func (r *report) add(path []any, opm, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.addProblem(problem{Problem{Message: message}, path, opm + message})
}

func (r *report) addProblem(p problem) {
	if len(r.problems) == maxProblems {
		r.more++
		return
	}
	p.Message, p.opm = fault.Clip(p.Message, 2<<10), fault.Clip(p.opm, 64<<10)
	r.problems = append(r.problems, p)
}

// err returns the *[Error] of what was noted, nil if that is nothing.
func (r *report) err() error {
	if len(r.problems) == 0 {
		return nil
	}
	e := &Error{opm: r.prefix + r.problems[0].opm}
	for _, p := range r.problems {
		line := p.Position.Line
		if p.Position = r.positionOf(p.path); line != 0 {
			p.Position.Line = line
		}
		if p.Position.File == "" {
			p.Position.Line = 0
		}
		e.Problems = append(e.Problems, p.Problem)
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int { return cmp.Compare(a.Position.Line, b.Position.Line) })
	if r.more > 0 {
		last := e.Problems[len(e.Problems)-1].Position
		e.Problems = append(e.Problems, Problem{Position: last, Message: fmt.Sprintf("... and %d more problems", r.more)})
	}
	return e
}

// maxScanned bounds the bytes of JSON that are looked through for lines: each look-up begins at the start.
const maxScanned = 256 << 20

// positionOf is where the value at a path is, or where the document begins.
func (r *report) positionOf(path []any) declcfg.Position {
	at := declcfg.Position{File: r.source.name, Line: r.source.line}
	if path == nil || r.source.isJSON && len(r.source.data)*r.located > maxScanned {
		return at
	}
	if r.locator == nil {
		r.locator = canon.NewLocator(r.source.data, r.source.isJSON)
	}
	r.located++
	if line, ok := r.locator.Line(path...); ok {
		at.Line += line - 1
	}
	return at
}

// article puts the article before a kind of value.
func article(kind string) string {
	switch kind {
	case "object":
		return "a mapping"
	case "array":
		return "a list"
	case "null":
		return "null"
	}
	return "a " + kind
}

// syntaxProblem turns an error of reading the document into a problem. The lines of these errors count from the
// document's first.
func syntaxProblem(first int, err error) problem {
	p := problem{Problem: Problem{Message: err.Error()}, opm: "decoding template input: " + err.Error()}
	p.Position.Line = max(first, 1)
	var syntax *canon.SyntaxError
	var limit *canon.LimitError
	switch {
	case errors.As(err, &syntax):
		p.Position.Line += max(syntax.Line, 1) - 1
		p.Message = syntax.Format + ": " + syntax.Msg
	case errors.As(err, &limit):
		p.Position.Line += max(limit.Line, 1) - 1
		p.Message = (&canon.LimitError{What: limit.What, Limit: limit.Limit}).Error()
		p.Err = declcfg.ErrLimit
	}
	return p
}
