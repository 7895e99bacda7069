package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
)

// env returns the environment variable of a flag: BINDERY_LOG_LEVEL for --log-level.
func env(flag string) []string {
	return []string{"BINDERY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

// exactly refuses any number of arguments but n.
func exactly(n int, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() != n {
			return argumentError(c, n, fmt.Sprintf("accepts %d arg(s), received %d", n, c.NArg()))
		}
		return action(c)
	}
}

// argumentError returns an error about the number of arguments, with a hint that names the first of n that is missing.
func argumentError(c *cli.Context, n int, text string) error {
	e := cmdline.Usagef("%s", text)
	words := strings.Fields(c.Command.ArgsUsage)
	if at := c.NArg(); at < n && at < len(words) {
		e.Hint = strings.TrimSuffix(words[at], "...") + " is missing"
	} else if len(words) == 0 {
		e.Hint = fmt.Sprintf("%q is not expected: the command takes flags only", c.Args().First())
	}
	return e
}

// atLeast refuses fewer arguments than n.
func atLeast(n int, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() < n {
			return argumentError(c, n, fmt.Sprintf("requires at least %d arg(s), only received %d", n, c.NArg()))
		}
		return action(c)
	}
}

// between refuses fewer arguments than low and more than high.
func between(low, high int, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if n := c.NArg(); n < low || n > high {
			return argumentError(c, low, fmt.Sprintf("accepts between %d and %d arg(s), received %d", low, high, n))
		}
		return action(c)
	}
}

// catalogFormatFlag is -o for commands that print a catalog.
func catalogFormatFlag() cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "json",
		Usage: "`FORMAT` of the catalog (json|yaml)"}
}

// catalogFormat reads the value of [catalogFormatFlag].
func catalogFormat(c *cli.Context) (declcfg.Format, error) {
	f, err := declcfg.ParseFormat(c.String("output"))
	if err != nil {
		return "", cmdline.Usagef("invalid --output value %q, expected (json|yaml)", c.String("output"))
	}
	return f, nil
}

// listFormat reads -o for commands that print text or, on request, JSON.
func listFormat(c *cli.Context, formats ...string) (string, error) {
	v := c.String("output")
	if v == "" {
		return "", nil
	}
	if slices.Contains(formats, v) {
		return v, nil
	}
	return "", cmdline.Usagef("invalid --output value %q, expected (%s)", v, strings.Join(formats, "|"))
}

// examples formats the last part of a command's description. A test runs each line.
func examples(lines ...string) string {
	return "\n\nExamples:\n  " + strings.Join(lines, "\n  ")
}

// jobsFlag bounds concurrent work.
func jobsFlag() cli.Flag {
	return &cli.IntFlag{
		Name: "jobs", Usage: "run up to `N` jobs in parallel; 0 means one per CPU", EnvVars: env("jobs"),
		Action: func(_ *cli.Context, n int) error {
			if n < 0 {
				return cmdline.Usagef("invalid --jobs value %d, expected a positive number or 0", n)
			}
			return nil
		},
	}
}

// migrateLevelFlag selects the migration level of bundles.
func migrateLevelFlag(group string) cli.Flag {
	return &cli.StringFlag{Name: "migrate-level", Value: "none", Category: group,
		Usage: "apply all migrations up to `LEVEL` (none|bundle-object-to-csv-metadata)"}
}

// compatFlag selects another program's answer where bindery's is different on purpose.
func compatFlag() cli.Flag {
	return &cli.StringFlag{Name: "compat",
		Usage: "reproduce the output of another `PROGRAM`, including its losses (opm)"}
}

// inCategory assigns a flag to a group of the help text.
func inCategory(f cli.Flag, group string) cli.Flag {
	switch f := f.(type) {
	case *cli.IntFlag:
		f.Category = group
	case *cli.StringFlag:
		f.Category = group
	}
	return f
}
