package option

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// Answer is the form of an answer.
type Answer struct{ Output string }

// Flags are the flags of commands that have an answer.
func (o *Answer) Flags() []cli.Flag { return []cli.Flag{program.AnswerFlag(&o.Output)} }

// Format returns the form of the answer.
func (o *Answer) Format() (program.Format, error) { return program.AnswerFormat(o.Output) }
