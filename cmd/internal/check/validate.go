package check

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
	"github.com/operator-bindery/bindery/cmd/internal/hint"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render"
)

// validateOptions are the flags of "validate".
type validateOptions struct {
	option.Catalogs
	output string
	jobs   int
}

// ValidateCommand returns the command "validate".
func ValidateCommand(p *option.Session) *cli.Command {
	o := &validateOptions{}
	return &cli.Command{
		Name:      "validate",
		Usage:     "check a catalog directory",
		ArgsUsage: "DIR",
		Description: `Reports all violations in the catalog together, with file and line. With -o the result
is written to standard output even if the catalog is invalid; the exit status is 1 then. A catalog without
packages is an error unless --allow-empty is set.` +
			program.Examples("bindery validate catalog", "bindery validate catalog -o json"),
		Flags: []cli.Flag{
			program.AnswerFlag(&o.output),
			o.AllowEmptyFlag(""),
			option.JobsFlag(&o.jobs, ""),
		},
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return o.validate(ctx, p, args[0])
		})),
	}
}

// Verdict is the answer in opm's format plus the list of problems, which opm does not have.
type Verdict struct {
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

func (o *validateOptions) validate(ctx context.Context, p *option.Session, dir string) (err error) {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) && !p.Opm {
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
	with := declcfg.LoadOptions{Dir: dir, Jobs: o.jobs, Warn: p.WarnAt, Read: p.Loading(dir)}
	if format.IsDocument() && !p.Opm {
		rest.format, with.Omitted = string(format), rest.add
	}
	valid, err := validateDir(ctx, dir, with)
	if err == nil {
		err = o.CheckEmpty(p, dir, valid.Packages)
	}
	if err != nil && context.Cause(ctx) != nil {
		return err
	}
	if !format.IsDocument() {
		if err == nil && !p.Opm {
			logNotes(p, valid)
			p.Log.Info(fmt.Sprintf("%q is a valid catalog", dir))
		}
		if hint := hint.OfCatalog(dir); err != nil && hint != "" && !p.Opm {
			return &cmdline.Error{Class: cmdline.ClassInput, Object: dir, Hint: hint, Err: err}
		}
		return p.OpmMessage(err)
	}
	v := Verdict{Passed: err == nil}
	if err == nil && !p.Opm {
		v.Notes, v.MoreNotes = valid.Notes, valid.MoreNotes
	}
	if err != nil {
		v.Error = &verdictError{message(p, err)}
		var problems *declcfg.ValidationError
		if errors.As(err, &problems) && !p.Opm {
			v.Problems = problems.Problems
		}
	}
	if err := writeVerdict(p, ctx, v, string(format), &rest); err != nil {
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

// CountWarnings logs how many warnings were suppressed.
func CountWarnings(p *option.Session, _ bool) error {
	if more := p.Warned.Load() - program.MaxWarnings; more > 0 {
		p.Log.Warn(fmt.Sprintf("%d more warnings", more))
	}
	return nil
}

// logNotes logs what is valid but probably unintended.
func logNotes(p *option.Session, v *declcfg.Validated) {
	for _, n := range v.Notes {
		p.Log.Info(fmt.Sprintf("%s: note: %s", n.Position, n.Text()))
	}
	if v.MoreNotes > 0 {
		p.Log.Info(fmt.Sprintf("%d more notes of this kind", v.MoreNotes))
	}
}

// message returns the message about an invalid catalog, for the answer.
func message(p *option.Session, err error) string {
	problems := declcfg.ProblemsOf(err)
	switch {
	case problems == nil:
		return err.Error()
	case p.Opm:
		return problems.OpmMessage()
	}
	return problems.AnswerMessage()
}

// writeVerdict writes the answer. Its list of problems ends with those that the error does not contain.
func writeVerdict(p *option.Session, ctx context.Context, v Verdict, format string, rest *restOfProblems) error {
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
	if _, err := p.Stdout.Write(text); err != nil {
		return err
	}
	if err := errors.Join(rest.err, rest.text.Flush(ctx, p.Stdout)); err != nil {
		return err
	}
	_, err = io.WriteString(p.Stdout, end)
	return err
}
