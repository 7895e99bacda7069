package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/cliutil"
)

// showError writes the error to standard error: as JSON on request, in opm's forms under its name, else as text. That
// standard error itself cannot be written leaves nobody to tell.
func (p *program) showError(app *cli.App, line cliutil.Line, args []string, err error) {
	usage := cliutil.Classify(err) == cliutil.ClassUsage
	var about *cliutil.Error
	if errors.As(err, &about) {
		about.Object = images.WithoutCredentials(about.Object)
	}
	var text strings.Builder
	switch {
	case errorFormat(args) == "json":
		_ = cliutil.WriteJSON(&text, err)
	case p.opm:
		text.WriteString(opmError(app, line, err, time.Now()))
	default:
		_ = cliutil.WriteText(&text, err)
		if usage {
			fmt.Fprintf(&text, "usage: %s\n", cliutil.Synopsis(app, line))
		}
	}
	// Most errors say what the user gave.
	_, _ = io.WriteString(p.stderr, images.NamesWithoutCredentials(text.String()))
}

// errorFormat is the value of --error-format, also on a line that cannot be parsed.
func errorFormat(args []string) string {
	format := os.Getenv(env("error-format")[0])
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, "--error-format="); ok {
			format = v
		} else if arg == "--error-format" && i+1 < len(args) {
			format = args[i+1]
		}
	}
	return format
}

// opmError is an error in the form in which opm's command shows it: scripts around opm look for "Error: " and for
// "level=fatal msg=".
func opmError(app *cli.App, line cliutil.Line, err error, now time.Time) string {
	message := cliutil.Clean(err.Error())
	var wrong *opmEditError
	errors.As(err, &wrong)
	switch command := line.Name("opm"); {
	case (command == "opm render" || command == "opm alpha render-graph") && !isSyntax(err):
		return fmt.Sprintf("%s %s\n", now.Format("2006/01/02 15:04:05"), cliutil.Indent(message))
	case isSyntax(err),
		command == "opm validate" && cliutil.Classify(err) != cliutil.ClassInput,
		command == "opm generate dockerfile" && !errors.Is(err, fs.ErrExist),
		command == "opm registry serve",
		command == "opm registry add",
		strings.HasPrefix(command, "opm index ") && (wrong == nil || !wrong.field),
		command == "opm alpha bundle validate",
		strings.HasSuffix(command, " render-template"):
		return fmt.Sprintf("Error: %s\nUsage:\n  %s\n\n", cliutil.Indent(message), cliutil.Synopsis(app, line))
	}
	if wrong != nil && wrong.field {
		return fmt.Sprintf("time=%q level=fatal msg=%q error=%s\n", now.UTC().Format(time.RFC3339), "permissive mode disabled", strconv.Quote(err.Error()))
	}
	return fmt.Sprintf("time=%q level=fatal msg=%s\n", now.UTC().Format(time.RFC3339), strconv.Quote(err.Error()))
}

// isSyntax is true for errors of the command line's form, not of a flag's value.
func isSyntax(err error) bool {
	return cliutil.Classify(err) == cliutil.ClassUsage && !strings.Contains(err.Error(), "value ") && !strings.Contains(err.Error(), "migration level")
}
