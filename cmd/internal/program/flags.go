package program

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/regularfile"
)

// maxSourceDate is the last second of the year 9999: documents write a year in four digits (RFC 3339).
const maxSourceDate = 253_402_300_799

// SourceDate returns the time for the configuration of an image: SOURCE_DATE_EPOCH (reproducible-builds.org), or zero.
func SourceDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > maxSourceDate {
		return time.Time{}, cmdline.Usagef("SOURCE_DATE_EPOCH is %.100q, expected seconds since 1970, at most %d", text,
			maxSourceDate)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// Values splits the values of a comma-separated or repeated flag, without blanks and empty ones.
func Values(given []string) ([]string, error) {
	values, err := cmdline.List(given)
	for i := range values {
		values[i] = strings.TrimSpace(values[i])
	}
	return slices.DeleteFunc(values, func(v string) bool { return v == "" }), err
}

// Env returns the environment variable of a flag: BINDERY_LOG_LEVEL for --log-level.
func Env(flag string) []string {
	return []string{"BINDERY_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))}
}

// Exactly refuses any number of arguments but n.
func Exactly(n int, action cli.ActionFunc) cli.ActionFunc { return Between(n, n, action) }

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

// AtLeast refuses fewer arguments than n.
func AtLeast(n int, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if c.NArg() < n {
			return argumentError(c, n, fmt.Sprintf("requires at least %d arg(s), only received %d", n, c.NArg()))
		}
		return action(c)
	}
}

// Between refuses fewer arguments than low and more than high.
func Between(low, high int, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		if err := CheckArguments(c, low, high); err != nil {
			return err
		}
		return action(c)
	}
}

// CheckArguments refuses fewer arguments than low and more than high, in the words of opm.
func CheckArguments(c *cli.Context, low, high int) error {
	switch n := c.NArg(); {
	case n >= low && n <= high:
		return nil
	case low == high:
		return argumentError(c, low, fmt.Sprintf("accepts %d arg(s), received %d", low, n))
	default:
		return argumentError(c, low, fmt.Sprintf("accepts between %d and %d arg(s), received %d", low, high, n))
	}
}

// CatalogFormatFlag is -o for commands that print a catalog.
func CatalogFormatFlag(at *string) cli.Flag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "json", Destination: at,
		Usage: "`FORMAT` of the catalog (json|yaml)"}
}

// ParseCatalogFormat reads the value of --output in commands that print a catalog.
func ParseCatalogFormat(text string) (declcfg.Format, error) {
	f, err := declcfg.ParseFormat(text)
	if err != nil {
		return "", cmdline.Usagef("invalid --output value %q, expected (json|yaml)", text)
	}
	return f, nil
}

// Format is the form of an answer.
type Format string

// The forms that each answer has. JSON and YAML have the same fields in the same order.
const (
	Text Format = "text"
	JSON Format = "json"
	YAML Format = "yaml"
)

// IsDocument reports whether [Program.PrintValue] prints answers of the form.
func (f Format) IsDocument() bool { return f == JSON || f == YAML }

// AnswerFlag is --output of a command with an answer. others are forms that it has besides those of all answers.
func AnswerFlag(at *string, others ...Format) *cli.StringFlag {
	return &cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: string(Text), Destination: at,
		Usage: "output `FORMAT` (" + formatsOf(others) + ")"}
}

// InCategory puts a flag under a heading of help.
func InCategory(name string, f *cli.StringFlag) cli.Flag {
	f.Category = name
	return f
}

// AnswerFormat reads the value of [AnswerFlag].
func AnswerFormat(v string, others ...Format) (Format, error) {
	if f := Format(v); f == Text || f.IsDocument() || slices.Contains(others, f) {
		return f, nil
	}
	if v == "" {
		return "", cmdline.Usagef("--output is empty, expected (%s)", formatsOf(others))
	}
	return "", cmdline.Usagef("invalid --output value %q, expected (%s)", v, formatsOf(others))
}

func formatsOf(others []Format) string {
	text := "text|json|yaml"
	for _, f := range others {
		text += "|" + string(f)
	}
	return text
}

// ObjectFormat reads the value of --output in commands that print Kubernetes objects.
func ObjectFormat(v string) (Format, error) {
	if f := Format(v); f == "" || f.IsDocument() {
		return f, nil
	}
	return "", cmdline.Usagef("invalid --output value %q, expected (yaml|json)", v)
}

// Examples formats the last part of a command's description. A test runs each line.
func Examples(lines ...string) string {
	return "\n\nExamples:\n  " + strings.Join(lines, "\n  ")
}

// Usage is a usage error, in place of the class that its text begins with.
func Usage(err error) error {
	if rest, ok := strings.CutPrefix(err.Error(), fault.ErrInvalid.Error()+": "); ok {
		return cmdline.Usagef("%s", rest)
	}
	return &cmdline.Error{Class: cmdline.ClassUsage, Err: err}
}

// Flags joins lists of flags.
func Flags(lists ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// Hidden hides a command from help.
func Hidden(c *cli.Command) *cli.Command {
	c.Hidden = true
	return c
}

// OpenInput opens a file that the user names, or standard input for "-", and returns its name for messages.
func (p *Program) OpenInput(ctx context.Context, file string) (io.ReadCloser, string, error) {
	if file == "-" {
		return io.NopCloser(p.Stdin), "stdin", nil
	}
	f, err := regularfile.OpenNamed(ctx, file)
	return f, file, err
}
