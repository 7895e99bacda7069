package cmdline

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/internal/printable"
)

// ManSection is an additional section of the manual page.
type ManSection struct {
	Title string
	// Items are terms and their explanations.
	Items [][2]string
}

// WriteMan writes the manual page (section 1) of the named command in roff with the man macros; for the program itself,
// that of the whole tree. The additional sections follow the commands of the latter.
func WriteMan(out io.Writer, app *cli.App, l Line, sections ...ManSection) error {
	w := bufio.NewWriter(out)
	usage, synopsis, description := app.Usage, app.HelpName+" COMMAND [flags] [arguments]", app.Description
	leaf := l.Leaf()
	if leaf != nil {
		usage, synopsis, description = leaf.Usage, Synopsis(app, l), leaf.Description
	}
	name := PageName(app, l)
	fmt.Fprintf(w, ".TH %s 1 \"\" %s \"User Commands\"\n", roff(strings.ToUpper(name)),
		roffArg(app.HelpName+" "+app.Version))
	fmt.Fprintf(w, ".ad l\n")
	fmt.Fprintf(w, ".SH NAME\n%s \\- %s\n", roff(name), roff(usage))
	fmt.Fprintf(w, ".SH SYNOPSIS\n.B %s\n", roff(synopsis))
	if description != "" {
		fmt.Fprintf(w, ".SH DESCRIPTION\n")
		manText(w, description)
	}
	if leaf == nil {
		fmt.Fprintf(w, ".SH GLOBAL FLAGS\n")
		manFlags(w, app.Flags)
		fmt.Fprintf(w, ".SH COMMANDS\n")
		manCommands(w, app, nil, app.Commands)
		for _, s := range sections {
			fmt.Fprintf(w, ".SH %s\n", roff(s.Title))
			for _, item := range s.Items {
				fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(item[0]), roff(item[1]))
			}
		}
		return w.Flush()
	}
	if len(leaf.Subcommands) > 0 {
		fmt.Fprintf(w, ".SH COMMANDS\n")
		manCommands(w, app, l.Path, leaf.Subcommands)
	}
	for _, group := range categories(leaf.Flags) {
		title := "FLAGS"
		if group != "" {
			title += ": " + strings.ToUpper(group)
		}
		fmt.Fprintf(w, ".SH %s\n", roffArg(title))
		manFlags(w, inCategory(leaf.Flags, group))
	}
	fmt.Fprintf(w, ".SH SEE ALSO\n.BR %s (1):\nglobal flags, exit status, environment and files.\n", roff(app.HelpName))
	return w.Flush()
}

// WritePage writes the manual page of the named command as plain text: its help with all flags, and for the program the
// additional sections.
func WritePage(out io.Writer, app *cli.App, l Line, sections ...ManSection) error {
	l.All = true
	if err := WriteHelp(out, app, l); err != nil || l.Leaf() != nil {
		return err
	}
	w := bufio.NewWriter(out)
	for _, s := range sections {
		fmt.Fprintf(w, "\n%s:\n", upper(strings.ToLower(s.Title)))
		for _, item := range s.Items {
			writeFlag(w, item[0], item[1])
		}
	}
	return w.Flush()
}

// PageName returns the name of a command's manual page, such as "bindery-list-packages".
func PageName(app *cli.App, l Line) string {
	names := []string{app.HelpName}
	for _, c := range l.Path {
		names = append(names, c.Name)
	}
	return strings.Join(names, "-")
}

// Lines returns the lines of all visible commands, groups before their commands; the first one is the program's own.
func Lines(app *cli.App) []Line {
	all := []Line{{}}
	var walk func(path, cmds []*cli.Command)
	walk = func(path, cmds []*cli.Command) {
		for _, c := range cmds {
			if !c.Hidden {
				l := Line{Path: append(slices.Clone(path), c)}
				all = append(all, l)
				walk(l.Path, c.Subcommands)
			}
		}
	}
	walk(nil, app.Commands)
	return all
}

func manCommands(w io.Writer, app *cli.App, path, cmds []*cli.Command) {
	for _, c := range cmds {
		if c.Hidden {
			continue
		}
		l := Line{Path: append(append([]*cli.Command(nil), path...), c)}
		if len(c.Subcommands) > 0 {
			manCommands(w, app, l.Path, c.Subcommands)
			continue
		}
		fmt.Fprintf(w, ".SS %s\n%s.\n.PP\n", roffArg(Synopsis(app, l)), roff(c.Usage))
		manText(w, c.Description)
		manFlags(w, c.Flags)
	}
}

// manText writes paragraphs; lines that start with two spaces are preformatted.
func manText(w io.Writer, text string) {
	literal := false
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		if shown := strings.HasPrefix(line, "  "); shown != literal {
			literal = shown
			if literal {
				fmt.Fprintf(w, ".PP\n.nf\n")
			} else {
				fmt.Fprintf(w, ".fi\n")
			}
		}
		if line == "" {
			fmt.Fprintf(w, ".PP\n")
			continue
		}
		fmt.Fprintf(w, "%s\n", roff(line))
	}
	if literal {
		fmt.Fprintf(w, ".fi\n")
	}
}

func manFlags(w io.Writer, flags []cli.Flag) {
	for _, f := range flags {
		if !visible(f) {
			continue
		}
		label, text := flagText(f)
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(strings.TrimSpace(label)), roff(text))
	}
}

// roff escapes text for the body of a page.
func roff(s string) string {
	s = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(printable.Cell(s))
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = `\&` + s
	}
	return s
}

// roffArg escapes text as one argument of a macro.
func roffArg(s string) string { return `"` + strings.ReplaceAll(roff(s), `"`, `\(dq`) + `"` }
