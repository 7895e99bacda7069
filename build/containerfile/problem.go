//go:build !nobuildah

package containerfile

import (
	"errors"
	"fmt"
	"strings"
)

// ErrRun is the class of problems with a RUN that is not done without running it.
var ErrRun = errors.New("RUN needs a process in the image")

// Problem is what is wrong with one instruction.
type Problem struct {
	File string
	// Line is counted from 1; zero means the file as a whole.
	Line int
	// Instruction is its name in capitals; empty where it is not known.
	Instruction string
	Err         error
	// Mend says what helps, if that is known.
	Mend string
}

func (p *Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d", p.Line)
	}
	b.WriteString(": ")
	text := p.Err.Error()
	// Many texts of the library begin with the name.
	if p.Instruction != "" && !strings.HasPrefix(text, p.Instruction+" ") {
		b.WriteString(p.Instruction + ": ")
	}
	b.WriteString(text)
	if p.Mend != "" {
		b.WriteString("; " + p.Mend)
	}
	return b.String()
}

// Unwrap is what is wrong.
func (p *Problem) Unwrap() error { return p.Err }

// Problems are all that were found, in the order of the file.
type Problems []*Problem

func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives each of them.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// maxProblems is how many are reported of one file.
const maxProblems = 20

// mended is an error with what helps against it.
type mended struct {
	error
	mend string
}

func (m mended) Unwrap() error { return m.error }

// withMend says what helps.
func withMend(mend, format string, args ...any) error {
	return mended{fmt.Errorf(format, args...), mend}
}

// asProblem is an error with the place where it arose.
func (f *File) asProblem(line int, instruction string, err error) *Problem {
	p := &Problem{File: f.Name, Line: line, Instruction: strings.ToUpper(instruction), Err: err}
	var m mended
	if errors.As(err, &m) {
		p.Mend = m.mend
	}
	return p
}
