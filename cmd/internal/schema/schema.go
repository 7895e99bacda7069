package schema

import (
	"context"
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/docs/reference/schemas"
	"github.com/operator-bindery/bindery/internal/nearest"
)

// Command returns "schema".
func Command(p *option.Session) *cli.Command {
	var output string
	return &cli.Command{
		Name:      "schema",
		Usage:     "print the JSON Schema of a file or an answer",
		ArgsUsage: "[SCHEMA]",
		Description: `Every file that the program reads or writes, and every answer in JSON, has a JSON Schema
(draft 2020-12). Without SCHEMA the names are listed.` +
			program.Examples("bindery schema", "bindery schema selection",
				"bindery schema -o json"),
		Flags: []cli.Flag{
			program.AnswerFlag(&output),
		},
		Action: program.Between(0, 1, p.Action(func(_ context.Context, args []string) error { return printSchema(p, output, args) })),
	}
}

// printSchema prints the schema that is named, or the list of all.
func printSchema(p *option.Session, output string, args []string) error {
	format, err := program.AnswerFormat(output)
	if err != nil {
		return err
	}
	if len(args) == 0 {
		return listSchemas(p, format)
	}
	name := args[0]
	text, ok := schemas.Text(name)
	if !ok {
		e := &cmdline.Error{Class: cmdline.ClassUsage, Object: name, Err: fmt.Errorf("there is no schema %q", name),
			Hint: "\"bindery schema\" lists the names"}
		if near, found := nearest.Name(name, schemas.Names()); found {
			e.Hint = fmt.Sprintf("did you mean %q?", near)
		}
		return e
	}
	_, err = p.Stdout.Write(text)
	return err
}

// List is the answer of the command without an argument, as JSON.
type List struct {
	Schemas []schemas.Schema `json:"schemas"`
}

func listSchemas(p *option.Session, format program.Format) error {
	all, err := schemas.All()
	if err != nil {
		return err
	}
	if format.IsDocument() {
		return p.PrintValue(format, List{all})
	}
	var rows [][]string
	for _, s := range all {
		rows = append(rows, []string{s.Name, strings.TrimSuffix(s.Title, ".")})
	}
	return p.PrintTable([]string{"NAME", "DESCRIBES"}, rows...)
}
