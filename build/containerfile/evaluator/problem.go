//go:build !nobuildah

package evaluator

import (
	"errors"
	"fmt"
	"strings"
)

// ErrRun is the class of problems with RUN instructions that need a process.
var ErrRun = errors.New("RUN needs a process in the image")

// problem is an error in one instruction.
type problem struct {
	File string
	// Line counts from 1; zero means the whole file.
	Line int
	// Instruction is the name in capitals; empty if unknown.
	Instruction string
	Err         error
	// Mend is advice on how to fix it; it may be empty.
	Mend string
}

func (p *problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	text := p.Err.Error()
	// Many messages of the library start with the instruction's name.
	if p.Instruction != "" && !strings.HasPrefix(text, p.Instruction+" ") {
		b.WriteString(p.Instruction + ": ")
	}
	b.WriteString(text)
	if p.Mend != "" {
		b.WriteString("; " + p.Mend)
	}
	return b.String()
}

// Unwrap returns the cause.
func (p *problem) Unwrap() error { return p.Err }

// Problems are all problems of a file, sorted by line.
type Problems []*problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns each problem.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// maxProblems is how many problems are reported per file.
const maxProblems = 20

// mended is an error with advice on how to fix it.
type mended struct {
	error
	mend string
}

func (m mended) Unwrap() error { return m.error }

// newMendError returns an error with advice.
func newMendError(mend, format string, args ...any) error {
	return mended{fmt.Errorf(format, args...), mend}
}

func (f *File) asProblem(line int, instruction string, err error) *problem {
	p := &problem{File: f.Name, Line: line, Instruction: strings.ToUpper(instruction), Err: err}
	var m mended
	if errors.As(err, &m) {
		p.Mend = m.mend
	}
	return p
}
