package shape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
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

// maxFaults is how many faults of a file are reported.
const maxFaults = 100

// Read reads a document of a shape. The error has each fault as FILE:LINE:COLUMN: TEXT and is [fault.ErrInvalid], or a
// [*canon.LimitError].
func Read(in io.Reader, s *Shape, o Options) (*Document, error) {
	d := &Document{file: o.File}
	split := canon.NewSplitter(in, o.Limits)
	doc, err := split.Next()
	d.line = doc.Line
	if errors.Is(err, io.EOF) {
		return nil, invalid(o.File + ": it is empty")
	}
	if err != nil {
		return nil, d.syntax(err)
	}
	doc.Data = bytes.Clone(doc.Data)
	// What is read of the file is free from here on: its text, its copy and its JSON would be in memory together.
	switch _, err := split.Next(); {
	case err == nil:
		return nil, invalid(o.File + ": it has more than one document")
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
	var errs []error
	s.Check(d.JSON, func(f Fault) {
		if len(errs) == maxFaults {
			return
		}
		errs = append(errs, invalid(d.At(f.Path...)+": "+f.String()))
	})
	return d, errors.Join(errs...)
}

// syntax returns the error of text that cannot be read, with one position.
func (d *Document) syntax(err error) error {
	var syntax *canon.SyntaxError
	if errors.As(err, &syntax) {
		return invalid(fmt.Sprintf("%s:%d: %s: %s", d.file, d.line+max(syntax.Line, 1)-1, syntax.Format, syntax.Msg))
	}
	return fmt.Errorf("%s: %w", d.file, err)
}

// invalid is the text of an error of the class [fault.ErrInvalid].
type invalid string

func (e invalid) Error() string           { return string(e) }
func (e invalid) Is(target error) bool    { return target == fault.ErrInvalid }
func (e invalid) ErrorClass() fault.Class { return fault.Input }

// At returns FILE:LINE:COLUMN of the value at a path, or FILE:LINE of what is nearest to it.
func (d *Document) At(path ...any) string {
	for n := len(path); n >= 0; n-- {
		line, column, ok := d.values.Place(path[:n]...)
		switch {
		case ok && n == len(path):
			return fmt.Sprintf("%s:%d:%d", d.file, d.line+line-1, column)
		case ok:
			return fmt.Sprintf("%s:%d", d.file, d.line+line-1)
		}
	}
	return fmt.Sprintf("%s:%d", d.file, d.line)
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
