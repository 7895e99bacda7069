//go:build !nobuildah

package evaluator

import (
	"errors"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/internal/problem"
)

// ErrRun is the class of problems with RUN instructions that need a process.
var ErrRun = errors.New("RUN needs a process in the image")

// Problems are those of a file, sorted by line. The field of each is the name of the instruction in capitals; empty if
// unknown.
type Problems = problem.List[problem.Problem]

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

func (f *File) asProblem(line int, instruction string, err error) problem.Problem {
	p := problem.Problem{Place: problem.Place{File: f.Name, Line: line}, Text: err.Error(), Err: err}
	// Many messages of the library start with the instruction's name.
	if name := strings.ToUpper(instruction); !strings.HasPrefix(p.Text, name+" ") {
		p.Field = name
	}
	var m mended
	if errors.As(err, &m) {
		p.Text += "; " + m.mend
	}
	return p
}

// refuse returns an error with one problem.
func (f *File) refuse(line int, instruction string, err error) *Problems {
	return &Problems{Problems: []problem.Problem{f.asProblem(line, instruction, err)}}
}
