// Package problem has what is wrong with something that was read, and where: the place and the text of one problem, and
// lists of the first of many, which are errors.
package problem

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// Limits of a list: its message must be readable and bounded in memory.
const (
	// Most is how many problems are kept and shown; the others are counted.
	Most     = 100
	maxBytes = 64 << 10
)

// Place is where something is in a file.
type Place struct {
	File string `json:"file,omitempty"`
	// Line and Column count from 1; 0 if the problem concerns the whole file or the position is unknown.
	Line   int `json:"line,omitempty"`
	Column int `json:"column,omitempty"`
	// Dir, unless empty, is the directory that the file is below, so that it can be opened.
	Dir string `json:"-"`
}

// String returns FILE:LINE:COLUMN without what is unknown: an empty file, or numbers that are 0.
func (p Place) String() string {
	file := p.File
	if file != "" && p.Dir != "" {
		file = filepath.Join(p.Dir, filepath.FromSlash(file))
	}
	if file == "" || p.Line <= 0 {
		return file
	}
	file += ":" + strconv.Itoa(p.Line)
	if p.Column > 0 {
		file += ":" + strconv.Itoa(p.Column)
	}
	return file
}

// Compare compares the lines and columns of two places in a file.
func (p Place) Compare(q Place) int {
	return cmp.Or(cmp.Compare(p.Line, q.Line), cmp.Compare(p.Column, q.Column))
}

// Problem is one thing that is wrong in a configuration file, or to be known about it.
type Problem struct {
	Place
	// Field is the path of the value, such as mirror.operators[0].packages[2].minVersion.
	Field string `json:"field,omitempty"`
	// Text says what is wrong, Fix what to write instead; Fix may be empty.
	Text string `json:"text"`
	Fix  string `json:"fix,omitempty"`
	// Err is the kind or the cause of the problem.
	Err error `json:"-"`
}

// Error returns FILE:LINE:COLUMN: FIELD: TEXT (FIX) without what is unknown.
func (p Problem) Error() string {
	text := p.Text
	if p.Fix != "" {
		text += " (" + p.Fix + ")"
	}
	return Join(p.Place.String(), p.Field, text)
}

// Unwrap returns the kind or the cause.
func (p Problem) Unwrap() error { return p.Err }

// Join joins the parts of a message that are not empty: what it is about, then the text.
func Join(parts ...string) string {
	var there []string
	for _, p := range parts {
		if p != "" {
			there = append(there, p)
		}
	}
	return strings.Join(there, ": ")
}

// List has the first problems of something, and is an error about them. The zero value is an empty list.
type List[P error] struct {
	Problems []P
	// More is the number of other problems.
	More int

	bytes int // of the texts of those that were added
}

// Full reports whether further problems are only counted.
func (l *List[P]) Full() bool { return len(l.Problems) >= Most || l.bytes >= maxBytes }

// Add adds a problem, or counts it if the list is full.
func (l *List[P]) Add(p P) { l.AddNew(func() P { return p }) }

// AddNew is like [List.Add] of the problem that create returns. It is not called if the list is full: of hundreds of
// thousands only the first are made.
func (l *List[P]) AddNew(create func() P) {
	if l.Full() {
		l.More++
		return
	}
	p := create()
	l.Problems = append(l.Problems, p)
	l.bytes += len(p.Error())
}

// Of returns the list of some errors as an error; nil if there are none.
func Of(errs ...error) error {
	var l List[error]
	for _, err := range errs {
		l.Add(err)
	}
	return l.Err()
}

// Err returns the list; nil if it is empty.
func (l *List[P]) Err() error {
	if len(l.Problems) == 0 {
		return nil
	}
	return l
}

// Error returns one problem per line.
func (l *List[P]) Error() string { return strings.Join(l.Lines(), "\n") }

// Lines returns the distinct texts of the problems as [Lines] does.
func (l *List[P]) Lines() []string { return Lines(l.Problems, l.More, P.Error) }

// Unwrap returns the problems.
func (l *List[P]) Unwrap() []error {
	errs := make([]error, len(l.Problems))
	for i, p := range l.Problems {
		errs[i] = p
	}
	return errs
}

// Lines returns the first distinct texts of problems, at most [Most], and then the number of the others, of which there
// are more that are not in the list.
func Lines[P any](problems []P, more int, text func(P) string) []string {
	var lines []string
	seen := map[string]bool{}
	for _, p := range problems {
		line := text(p)
		switch {
		case seen[line]:
			continue
		case len(lines) < Most:
			lines = append(lines, line)
		default:
			more++
		}
		seen[line] = true
	}
	if more > 0 {
		lines = append(lines, Others(more))
	}
	return lines
}

// Others says how many other problems there are.
func Others(n int) string { return fmt.Sprintf("... and %d more problems", n) }
