package program_test

import (
	"errors"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// A hint loses the clauses about flags that the command lacks, and no others.
func TestClausesOfHints(t *testing.T) {
	p := &program.Program{Line: cmdline.Line{Path: []*cli.Command{{Name: "a", Flags: []cli.Flag{&cli.BoolFlag{Name: "has"}}}}}}
	for hint, want := range map[string]string{
		"set X, or --lacks":                        "set X",
		"set X, or --has":                          "set X, or --has",
		"--lacks does, and others need --has":      "others need --has",
		"use --has; --lacks helps, or --has again": "use --has, or --has again",
		"--lacks":                  "",
		`see "b --lacks", or wait`: `see "b --lacks", or wait`,
	} {
		var e *cmdline.Error
		if !errors.As(p.WithHintInWords(&cmdline.Error{Hint: hint}), &e) || e.Hint != want {
			t.Errorf("%q: %q, want %q", hint, e.Hint, want)
		}
	}
}
