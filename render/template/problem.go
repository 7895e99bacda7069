package template

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// Problem is one error in a template, at the invalid value. Err is the error of [RenderOptions].Render or another cause;
// nil if the template itself is invalid.
type Problem = problem.Problem

// Error has every problem of a template, sorted by line.
type Error struct {
	problem.List[Problem]

	opm string
}

// Error returns the problems, one per line, each with file and line.
func (e *Error) Error() string {
	text := e.List.Error()
	if n := len(e.Problems) + e.More; n > 1 {
		text = fmt.Sprintf("%d problems:\n%s", n, text)
	}
	return text
}

// errSchema is the kind of a schema that no template has, or not this one.
var errSchema = errors.New("unknown template schema")

// Hint has the schemas if a template has none of them.
func (e *Error) Hint() string {
	if errors.Is(e, errSchema) {
		return "the schemas of templates are " + strings.Join(Schemas(), ", ")
	}
	return ""
}

// OpmMessage returns opm's message for the template: it has the first problem only.
func (e *Error) OpmMessage() string { return e.opm }

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
	problems problem.List[reported]
	prefix   string // of opm's message
	locator  *canon.Locator
	located  int // number of look-ups
}

// reported is a [Problem] with a path instead of a line, and opm's message.
type reported struct {
	Problem
	path []any
	opm  string
}

// add adds a problem of the value at a path. opm is the prefix of opm's message, which is otherwise the same.
func (r *report) add(path []any, opm, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.addProblem(reported{Problem{Text: message}, path, opm + message})
}

// addSchema is add for a schema that no template has, or not this one.
func (r *report) addSchema(path []any, opm, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	r.addProblem(reported{Problem{Text: message, Err: errSchema}, path, opm + message})
}

func (r *report) addProblem(p reported) {
	p.Text, p.opm = fault.Clip(p.Text, 2<<10), fault.Clip(p.opm, 64<<10)
	r.problems.Add(p)
}

// err returns the *[Error] of the added problems; nil if there are none.
func (r *report) err() error {
	if r.problems.Err() == nil {
		return nil
	}
	e := &Error{opm: r.prefix + r.problems.Problems[0].opm}
	e.More = r.problems.More
	for _, p := range r.problems.Problems {
		line := p.Line
		if p.Place = r.positionOf(p.path); line != 0 {
			p.Line = line
		}
		if p.File == "" {
			p.Line = 0
		}
		e.Problems = append(e.Problems, p.Problem)
	}
	slices.SortStableFunc(e.Problems, func(a, b Problem) int { return a.Compare(b.Place) })
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
func syntaxProblem(first int, err error) reported {
	p := reported{Problem: Problem{Text: err.Error()}, opm: "decoding template input: " + err.Error()}
	p.Line = max(first, 1)
	var syntax *canon.SyntaxError
	var limit *canon.LimitError
	switch {
	case errors.As(err, &syntax):
		p.Line += max(syntax.Line, 1) - 1
		p.Text = syntax.Format + ": " + syntax.Msg
	case errors.As(err, &limit):
		p.Line += max(limit.Line, 1) - 1
		p.Text = (&canon.LimitError{What: limit.What, Limit: limit.Limit}).Error()
		p.Err = declcfg.ErrLimit
	}
	return p
}
