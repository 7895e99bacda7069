package app

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/internal/guard"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/internal/version"
)

// showError writes the error to standard error: as JSON on request, in opm's formats under its name, else as text. An
// error of writing to standard error cannot be reported.
func showError(p *option.Session, app *cli.App, line cmdline.Line, args []string, err error) {
	usage := cmdline.Classify(err) == cmdline.ClassUsage
	w := bufio.NewWriterSize(p.Stderr, 64<<10)
	defer w.Flush()
	var invalid *declcfg.ValidationError
	if errors.As(err, &invalid) && !p.Opm {
		invalid.FindLines(declcfg.Limits{})
	}
	switch {
	case errorFormat(args) == "json":
		_ = cmdline.WriteJSON(w, err)
	case p.Opm:
		_, _ = w.WriteString(redact.Text(opmError(app, line, err, time.Now())))
	default:
		_ = cmdline.WriteText(w, err)
		if usage {
			fmt.Fprintf(w, "usage: %s\n", cmdline.Synopsis(app, line))
		}
	}
}

// bugReport is the error of a panic, with what those who mend it need: the version, the command without its arguments,
// and where it happened.
func bugReport(bug *guard.Panic, err error, command string) error {
	lines := []string{version.Get().String(), "command: " + command}
	for _, f := range bug.Frames {
		lines = append(lines, "at "+f)
	}
	return &cmdline.Error{Class: cmdline.ClassBug, Err: err,
		Hint: "this is a bug: please report it with the lines below at https://" + module + "/issues",
		List: slices.Values(lines)}
}

// module is where the program comes from.
const module = "github.com/operator-bindery/bindery"

// errorFormat returns the value of --error-format, even if the command line cannot be parsed.
func errorFormat(args []string) string {
	format := os.Getenv(program.Env("error-format")[0])
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

// opmError formats an error as opm does: scripts for opm look for "Error: " and "level=fatal msg=".
func opmError(app *cli.App, line cmdline.Line, err error, now time.Time) string {
	var wrong *catalogcmd.OpmEditError
	errors.As(err, &wrong)
	command := line.Name("opm")
	message := printable.Text(err.Error())
	if text := opmPullError(command, err); text != "" {
		message = printable.Text(text)
	}
	switch {
	case (command == "opm render" || command == "opm alpha render-graph") && !isSyntax(err):
		return fmt.Sprintf("%s %s\n", now.Format("2006/01/02 15:04:05"), printable.Indent(message))
	case isSyntax(err),
		command == "opm validate" && cmdline.Classify(err) != cmdline.ClassInput,
		command == "opm generate dockerfile" && !errors.Is(err, fs.ErrExist),
		command == "opm registry serve",
		command == "opm registry add",
		strings.HasPrefix(command, "opm index ") && (wrong == nil || !wrong.Field),
		strings.HasPrefix(command, "opm alpha bundle "),
		strings.HasSuffix(command, " render-template"):
		return fmt.Sprintf("Error: %s\nUsage:\n  %s\n\n", printable.Indent(message), cmdline.Synopsis(app, line))
	}
	if wrong != nil && wrong.Field {
		return fmt.Sprintf("time=%q level=fatal msg=%q error=%s\n", now.UTC().Format(time.RFC3339),
			"permissive mode disabled", strconv.Quote(err.Error()))
	}
	return fmt.Sprintf("time=%q level=fatal msg=%s\n", now.UTC().Format(time.RFC3339), strconv.Quote(err.Error()))
}

// opmPullError returns the text of opm commands that pull with containerd's resolver, for an image that could not be
// pulled; empty for other commands and errors. Wrappers match this text.
func opmPullError(command string, err error) string {
	var pull *images.PullError
	if !errors.As(err, &pull) || !errors.Is(err, images.ErrRegistry) {
		return ""
	}
	for _, family := range []string{"opm registry ", "opm index ", "opm alpha bundle "} {
		if strings.HasPrefix(command, family) {
			reason := pull.Err.Error()
			if status := (*registries.StatusError)(nil); errors.As(err, &status) && status.Status == http.StatusNotFound {
				reason = pull.Name + ": not found"
			}
			return fmt.Sprintf("error resolving remote name %q: %s", pull.Name, reason)
		}
	}
	return ""
}

// isSyntax reports whether the error is about the form of the command line, not about a flag's value.
func isSyntax(err error) bool {
	return cmdline.Classify(err) == cmdline.ClassUsage && !strings.Contains(err.Error(),
		"value ") && !strings.Contains(err.Error(), "migration level")
}
