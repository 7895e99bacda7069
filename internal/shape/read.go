package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
)

// Document is the only document of a file that people write, in YAML or JSON.
type Document struct {
	// JSON is its canonical text; it has the shape that was asked for.
	JSON   []byte
	file   string
	line   int // of its start
	values *canon.Locator
}

// Options configure [Read].
type Options struct {
	// File is the name in messages.
	File   string
	Limits canon.Limits
	// Warn, unless nil, is called for repeated keys.
	Warn func(line int, text string)
}

// Read reads a document of a shape. The error is a list of faults in the order of the lines, which are
// [fault.ErrInvalid], or a [*canon.LimitError].
func Read(in io.Reader, s *Shape, o Options) (*Document, error) {
	d := &Document{file: o.File}
	split := canon.NewSplitter(in, o.Limits)
	doc, err := split.Next()
	d.line = doc.Line
	if errors.Is(err, io.EOF) {
		return nil, d.invalid(0, "it is empty")
	}
	if err != nil {
		return nil, d.syntax(err)
	}
	doc.Data = bytes.Clone(doc.Data)
	// What is read of the file is free from here on: its text, its copy and its JSON would be in memory together.
	switch _, err := split.Next(); {
	case err == nil:
		return nil, d.invalid(0, "it has more than one document")
	case !errors.Is(err, io.EOF):
		return nil, d.syntax(err)
	}
	conv := canon.Converter{Limits: o.Limits}
	if o.Warn != nil {
		conv.Warn = func(line int, text string) { o.Warn(d.line+line-1, text) }
	}
	if d.JSON, err = conv.Append(nil, doc); err != nil {
		return nil, d.syntax(err)
	}
	d.values = canon.NewLocator(doc.Data, doc.JSON)
	var faults problem.List[problem.Problem]
	s.Check(d.JSON, func(f Fault) {
		faults.AddNew(func() problem.Problem {
			return problem.Problem{Place: d.At(f.Path...), Text: f.String(), Err: fault.ErrInvalid}
		})
	})
	slices.SortStableFunc(faults.Problems, func(a, b problem.Problem) int { return a.Compare(b.Place) })
	return d, faults.Err()
}

// syntax returns the error of text that cannot be read, with one position.
func (d *Document) syntax(err error) error {
	var syntax *canon.SyntaxError
	if errors.As(err, &syntax) {
		return d.invalid(d.line+max(syntax.Line, 1)-1, syntax.Format+": "+syntax.Msg)
	}
	return fmt.Errorf("%s: %w", d.file, err)
}

// invalid returns an error about a line, or about the whole file.
func (d *Document) invalid(line int, text string) error {
	return problem.Problem{Place: problem.Place{File: d.file, Line: line}, Text: text, Err: fault.ErrInvalid}
}

// At returns the place of the value at a path, or the line of what is nearest to it.
func (d *Document) At(path ...any) problem.Place {
	for n := len(path); n >= 0; n-- {
		if line, column, ok := d.values.Place(path[:n]...); ok {
			at := problem.Place{File: d.file, Line: d.line + line - 1}
			if n == len(path) {
				at.Column = column
			}
			return at
		}
	}
	return problem.Place{File: d.file, Line: d.line}
}

// Line returns the line of the value at a path, counted from 1; that of the document if it is unknown.
func (d *Document) Line(path ...any) int {
	if line, ok := d.values.Line(path...); ok {
		return d.line + line - 1
	}
	return d.line
}

// Decode decodes the document.
func (d *Document) Decode(into any) error { return Explain(d.JSON, json.Unmarshal(d.JSON, into)) }
