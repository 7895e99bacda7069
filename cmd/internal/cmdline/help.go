package cmdline

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// Prepare disables, in the whole tree, default behaviour of the command library: help and version flags, help commands,
// printing of usage errors, exiting, splitting of values at commas (see [List]).
func Prepare(app *cli.App) {
	usage := func(c *cli.Context, err error, _ bool) error { return valueError(c, err) }
	app.HideHelp, app.HideHelpCommand, app.HideVersion = true, true, true
	app.DisableSliceFlagSeparator = true
	app.OnUsageError = usage
	app.ExitErrHandler = func(*cli.Context, error) {}
	var walk func([]*cli.Command)
	walk = func(cmds []*cli.Command) {
		for _, c := range cmds {
			c.HideHelp, c.HideHelpCommand = true, true
			c.OnUsageError = usage
			walk(c.Subcommands)
		}
	}
	walk(app.Commands)
}

var valuePattern = regexp.MustCompile(`(?s)^invalid (?:boolean )?value (".*") for (?:flag )?-([a-z-]+): `)

// valueError converts an error of the flag library to this program's form.
func valueError(c *cli.Context, err error) error {
	m := valuePattern.FindStringSubmatch(err.Error())
	if m == nil {
		return Usagef("%w", err)
	}
	flags := c.App.Flags
	if c.Command != nil {
		flags = append(slices.Clone(c.Command.Flags), flags...)
	}
	expected := ""
	for _, f := range flags {
		if !slices.Contains(f.Names(), m[2]) {
			continue
		}
		switch f.(type) {
		case *cli.IntFlag:
			expected = ", expected a whole number"
		case *cli.DurationFlag:
			expected = ", expected a number with a unit, such as 90s or 10m"
		case *cli.BoolFlag:
			expected = ", expected true or false"
		}
		break
	}
	return Usagef("invalid --%s value %s%s", m[2], m[1], expected)
}

// Synopsis returns the usage line of the named command, such as "bindery validate [flags] DIR".
func Synopsis(app *cli.App, l Line) string {
	parts := []string{l.Name(app.HelpName)}
	leaf := l.Leaf()
	switch {
	case leaf == nil || len(leaf.Subcommands) > 0:
		parts = append(parts, "COMMAND")
	case len(leaf.Flags) > 0:
		parts = append(parts, "[flags]")
	}
	if leaf != nil && leaf.ArgsUsage != "" {
		parts = append(parts, leaf.ArgsUsage)
	}
	return strings.Join(parts, " ")
}

// WriteHelp writes the help text of the named command: its description, usage line, subcommands or flags, and for the
// program its flags. Of many flags it shows the common ones, unless all are requested. No line exceeds 100 columns.
func WriteHelp(out io.Writer, app *cli.App, l Line) error {
	w := bufio.NewWriter(out)
	cmds, flags := app.Commands, app.Flags
	name, usage, description := app.HelpName, app.Usage, app.Description
	leaf := l.Leaf()
	if leaf != nil {
		cmds, flags = leaf.Subcommands, leaf.Flags
		name, usage, description = l.Name(app.HelpName), leaf.Usage, leaf.Description
	}
	title := strings.Join(wrap(name+" - "+usage, helpWidth), "\n")
	fmt.Fprintf(w, "%s\n\nUsage:\n  %s\n", title, Synopsis(app, l))
	// Examples use the name under which the program was started.
	description = strings.ReplaceAll(description, "\n  bindery ", "\n  "+app.HelpName+" ")
	if description != "" {
		fmt.Fprintf(w, "\n%s\n", reflow(description))
	}
	writeCommands(w, cmds)
	if leaf == nil {
		writeFlags(w, "Global flags", flags)
		fmt.Fprintf(w, "\nRun \"%s COMMAND --help\" for more about a command.\n", app.HelpName)
		return w.Flush()
	}
	if shown := common(flags); !l.All && len(shown) < countVisible(flags) {
		writeFlags(w, "Common flags", shown)
		fmt.Fprintf(w, "\nRun \"%s --help-all\" for all %d flags.\n", name, countVisible(flags))
	} else {
		for _, group := range categories(flags) {
			title := "Flags"
			if group != "" {
				title += ": " + group
			}
			writeFlags(w, title, inCategory(flags, group))
		}
	}
	if len(cmds) == 0 {
		fmt.Fprintf(w, "\nRun \"%s --help\" for the global flags.\n", app.HelpName)
	}
	return w.Flush()
}

// writeCommands lists the visible commands under the heading of their category, in the order of the first of each.
func writeCommands(w io.Writer, cmds []*cli.Command) {
	width, groups := 0, []string(nil)
	cmds = slices.DeleteFunc(slices.Clone(cmds), func(c *cli.Command) bool { return c.Hidden })
	for _, c := range cmds {
		width = max(width, len(c.Name))
		if !slices.Contains(groups, c.Category) {
			groups = append(groups, c.Category)
		}
	}
	for _, group := range groups {
		fmt.Fprintf(w, "\n%s:\n", cmp.Or(group, "Commands"))
		for _, c := range cmds {
			if c.Category == group {
				fmt.Fprintf(w, "  %-*s  %s\n", width, c.Name, c.Usage)
			}
		}
	}
}

func countVisible(flags []cli.Flag) int {
	n := 0
	for _, f := range flags {
		if visible(f) {
			n++
		}
	}
	return n
}

// categories lists the categories of the visible flags in order of appearance; flags without a category come first.
func categories(flags []cli.Flag) []string {
	var out []string
	for _, f := range flags {
		if c := category(f); visible(f) && !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return min(len(a), 1) - min(len(b), 1) })
	return out
}

func category(f cli.Flag) string {
	if c, ok := f.(cli.CategorizableFlag); ok {
		return c.GetCategory()
	}
	return ""
}

func visible(f cli.Flag) bool {
	v, ok := f.(cli.VisibleFlag)
	return !ok || v.IsVisible()
}

func inCategory(flags []cli.Flag, group string) []cli.Flag {
	var out []cli.Flag
	for _, f := range flags {
		if category(f) == group {
			out = append(out, f)
		}
	}
	return out
}

func writeFlags(w io.Writer, title string, flags []cli.Flag) {
	first := true
	for _, f := range flags {
		if !visible(f) {
			continue
		}
		if first {
			fmt.Fprintf(w, "\n%s:\n", title)
			first = false
		}
		label, text := flagText(f)
		writeFlag(w, label, text)
	}
}

// writeFlag writes a flag and its description, in two columns.
func writeFlag(w io.Writer, label, text string) {
	const column = 30
	for i, line := range wrap(text, helpWidth-column-len("    ")) {
		if i == 0 && len(label) > column {
			fmt.Fprintf(w, "  %s\n", label)
			label = ""
		}
		fmt.Fprintf(w, "  %-*s  %s\n", column, label, line)
		label = ""
	}
}

// flagText returns a flag as help shows it: "-o, --output FORMAT" and its description with default and environment
// variable. The back-quoted word in the flag's usage text names the value.
func flagText(f cli.Flag) (label, text string) {
	var long, short string
	for i, n := range f.Names() { // other spellings are not shown
		if len(n) == 1 && i < 2 {
			short = "-" + n + ", "
		} else if long == "" {
			long = "--" + n
		}
	}
	if short = cmp.Or(short, "    "); long == "" {
		short = strings.TrimSuffix(short, ", ")
	}
	d, ok := f.(cli.DocGenerationFlag)
	if !ok {
		return short + long, ""
	}
	text = d.GetUsage()
	value := "VALUE"
	if before, rest, ok := strings.Cut(text, "`"); ok {
		if word, after, ok := strings.Cut(rest, "`"); ok {
			value = word
			if before == "" {
				word = noun(word)
			}
			text = before + word + after
		}
	}
	label = short + long
	if d.TakesValue() {
		label += " " + value
		if def := strings.Trim(d.GetDefaultText(), `"`); def != "" && def != "[]" && def != "0" && def != "0s" {
			text += fmt.Sprintf(" (default %s)", def)
		}
	}
	if env := d.GetEnvVars(); len(env) > 0 {
		text += fmt.Sprintf(" [$%s]", env[0])
	}
	return label, text
}

// nouns are the values of flags whose description does not start with the value's name in lower case.
var nouns = map[string]string{
	"DIR": "directory", "file://DIR": "directory", "REF": "reference", "OS/ARCH": "platform", "ID": "ID",
	"UID": "user ID",
	"URI": "URI", "NAME:UID": "name and UID",
}

// noun returns the name of a value as the start of a description: "--lock FILE  file with ...".
func noun(value string) string {
	if n, ok := nouns[value]; ok {
		return n
	}
	return strings.ToLower(value)
}
