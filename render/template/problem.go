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

// Problem is one error in a template.
type Problem struct {
	// Position is that of the invalid value.
	Position declcfg.Position
	Message  string
	// Err is the error of [RenderOptions].Render or another cause; nil if the template itself is invalid.
	Err error
}

// Error has every problem of a template, sorted by line.
type Error struct {
	Problems []Problem

	opm string
}

// Error returns the problems, one per line, each with file and line.
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

// OpmMessage returns opm's message for the template: it has the first problem only.
func (e *Error) OpmMessage() string { return e.opm }

// Unwrap returns the causes of the problems.
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
	line   int // first line of the document
	data   []byte
	isJSON bool
}

// report collects problems.
type report struct {
	source   *source
	problems []problem
	more     int    // problems that were only counted
	prefix   string // of opm's message
	locator  *canon.Locator
	located  int // number of look-ups
}

// maxProblems is how many problems an error contains.
const maxProblems = 100

// problem is a [Problem] with a path instead of a line, and opm's message.
type problem struct {
	Problem
	path []any
	opm  string
}

// add adds a problem of the value at a path. opm is the prefix of opm's message, which is otherwise the same.
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

// err returns the *[Error] of the added problems; nil if there are none.
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
		e.Problems = append(e.Problems,
			Problem{Position: last, Message: fmt.Sprintf("... and %d more problems", r.more)})
	}
	return e
}

// maxScanned is how many bytes of JSON are scanned to determine lines: each look-up begins at the start.
const maxScanned = 256 << 20

// positionOf returns the position of the value at a path, or of the document.
func (r *report) positionOf(path []any) declcfg.Position {
	at := declcfg.Position{File: r.source.name, Line: r.source.line}
	if path == nil || r.source.isJSON && len(r.source.data)*r.located > maxScanned {
		return at
	}
	if r.locator == nil {
		r.locator = canon.NewLocator(r.source.data, r.source.isJSON)
	}
	r.located++
	if line, column, ok := r.locator.Place(path...); ok {
		at.Line, at.Column = at.Line+line-1, column
	}
	return at
}

// syntaxProblem converts an error of parsing the document. The lines of these errors are relative to the document.
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
