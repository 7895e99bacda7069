package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"
	"sigs.k8s.io/yaml"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
)

func (p *program) validateCommand() *cli.Command {
	return &cli.Command{
		Name:      "validate",
		Usage:     "check a catalog directory",
		ArgsUsage: "DIR",
		Description: `Reports all violations in the catalog together, with file and line. With -o the result
is written to standard output even if the catalog is invalid; the exit status is 1 then. A catalog without
packages is an error unless --allow-empty is set.` +
			examples("bindery validate catalog", "bindery validate catalog -o json"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "output `FORMAT` (json|yaml)"},
			allowEmptyFlag(""),
			jobsFlag(),
		},
		Action: exactly(1, p.validate),
	}
}

// verdict is the answer in opm's format plus the list of problems, which opm does not have.
type verdict struct {
	Passed   bool              `json:"passed"`
	Error    *verdictError     `json:"error,omitempty"`
	Problems []declcfg.Problem `json:"problems,omitempty"`
	// Notes are valid but probably unintended.
	Notes     []declcfg.Problem `json:"notes,omitempty"`
	MoreNotes int               `json:"moreNotes,omitempty"`
}

type verdictError struct {
	Message string `json:"message"`
}

func (p *program) validate(c *cli.Context) (err error) {
	format, err := listFormat(c, "json", "yaml")
	if err != nil {
		return err
	}
	dir := c.Args().First()
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) && !p.opm {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: dir, Err: err,
			Hint: "the argument is a catalog directory; convert a database or an image with \"bindery migrate\""}
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: dir, Err: fmt.Errorf("%q is not a directory", dir),
			Hint: "name the catalog directory; convert a database or an image with \"bindery migrate\""}
	}
	if _, err := render.Classify(dir); err != nil {
		return err
	}
	var rest restOfProblems
	defer func() { err = errors.Join(err, rest.Close()) }()
	o := declcfg.LoadOptions{Dir: dir, Jobs: c.Int("jobs"), Warn: p.warnAt, Read: p.loading(dir)}
	if format != "" && !p.opm {
		rest.format, o.Omitted = format, rest.add
	}
	valid, err := validateDir(c.Context, dir, o)
	if err == nil {
		err = p.checkEmpty(c, dir, valid.Packages)
	}
	if err != nil && context.Cause(c.Context) != nil {
		return err
	}
	if format == "" {
		if err == nil && !p.opm {
			p.logNotes(valid)
			p.log.Info(fmt.Sprintf("%q is a valid catalog", dir))
		}
		if hint := catalogHint(dir); err != nil && hint != "" && !p.opm {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: dir, Hint: hint, Err: err}
		}
		return p.opmMessage(err)
	}
	v := verdict{Passed: err == nil}
	if err == nil && !p.opm {
		v.Notes, v.MoreNotes = valid.Notes, valid.MoreNotes
	}
	if err != nil {
		v.Error = &verdictError{p.message(err)}
		var problems *declcfg.ValidationError
		if errors.As(err, &problems) && !p.opm {
			v.Problems = problems.Problems
		}
	}
	if err := p.writeVerdict(c.Context, v, format, &rest); err != nil {
		return err
	}
	if !v.Passed {
		return &cmdline.ExitStatus{Status: 1}
	}
	return nil
}

// validateDir validates the catalog package by package, or as a whole if that finds an error.
func validateDir(ctx context.Context, dir string, o declcfg.LoadOptions) (*declcfg.Validated, error) {
	root, err := declcfg.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	return declcfg.ValidateFS(ctx, root, o)
}

// maxWarnings limits the warnings about the input: each line of a file could cause one.
const maxWarnings = 1000

// warnAt logs a loader's warning about accepted input.
func (p *program) warnAt(pos declcfg.Position, text string) {
	if p.warned.Add(1) > maxWarnings {
		return
	}
	if where := pos.String(); where != "" {
		text = where + ": " + text
	}
	p.log.Warn(text)
}

// countWarnings logs how many warnings were suppressed.
func (p *program) countWarnings(bool) error {
	if more := p.warned.Load() - maxWarnings; more > 0 {
		p.log.Warn(fmt.Sprintf("%d more warnings", more))
	}
	return nil
}

// logNotes logs what is valid but probably unintended.
func (p *program) logNotes(v *declcfg.Validated) {
	for _, n := range v.Notes {
		p.log.Info(fmt.Sprintf("%s: note: %s", n.Position, n.Text()))
	}
	if v.MoreNotes > 0 {
		p.log.Info(fmt.Sprintf("%d more notes of this kind", v.MoreNotes))
	}
}

// message returns the message about an invalid catalog, for the answer.
func (p *program) message(err error) string {
	problems := declcfg.ProblemsOf(err)
	switch {
	case problems == nil:
		return err.Error()
	case p.opm:
		return problems.OpmMessage()
	}
	return problems.AnswerMessage()
}

// opmMessage replaces the tree of all problems by opm's message if the program was started as opm.
func (p *program) opmMessage(err error) error {
	if !p.opm {
		return err
	}
	var name *render.NameError
	var reference *render.ReferenceError
	problems := declcfg.ProblemsOf(err)
	switch {
	case problems != nil && errors.As(err, &reference):
		return &render.ReferenceError{Reference: reference.Reference, Err: errors.New(problems.OpmMessage())}
	case problems != nil:
		return errors.New(problems.OpmMessage())
	case errors.As(err, &name):
		return fmt.Errorf("render reference %.300q: %s", redact.Text(name.Reference), name.OpmMessage())
	}
	return err
}

// writeVerdict writes the answer. Its list of problems ends with those that the error does not contain.
func (p *program) writeVerdict(ctx context.Context, v verdict, format string, rest *restOfProblems) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	end := "\n"
	if format == "yaml" {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		text = bytes.TrimSuffix(text, []byte("\n"))
	} else if rest.count > 0 {
		// The list of problems is the last field.
		end = "\n  ]\n}\n"
		text = bytes.TrimSuffix(text, []byte("\n  ]\n}"))
	}
	if _, err := p.stdout.Write(text); err != nil {
		return err
	}
	if err := errors.Join(rest.err, rest.text.Flush(ctx, p.stdout)); err != nil {
		return err
	}
	_, err = io.WriteString(p.stdout, end)
	return err
}
