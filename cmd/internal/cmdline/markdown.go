package cmdline

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

// WriteMarkdown writes a page in Markdown with the help of a command and of the commands below it, with all of their
// flags in tables. That of the program itself has its own flags and links to the pages of its commands (PROGRAM-NAME.md), and
// the sections of the manual page follow.
func WriteMarkdown(out io.Writer, app *cli.App, l Line, sections ...ManSection) error {
	w := bufio.NewWriter(out)
	if leaf := l.Leaf(); leaf != nil {
		fmt.Fprintf(w, "# %s\n", l.Name(app.HelpName))
		for _, below := range Lines(app) {
			if len(below.Path) >= len(l.Path) && below.Path[len(l.Path)-1] == leaf {
				mdCommand(w, app, below, len(below.Path) > len(l.Path))
			}
		}
		return w.Flush()
	}
	fmt.Fprintf(w, "# Commands\n\nThese pages are generated from the help of %s %s.\n", app.HelpName, app.Version)
	mdDescription(w, app.Description)
	fmt.Fprint(w, "\n| command | |\n|---|---|\n")
	for _, c := range app.Commands {
		if !c.Hidden {
			fmt.Fprintf(w, "| [%s](%s) | %s |\n", c.Name, app.HelpName+"-"+c.Name+".md", mdText(c.Usage))
		}
	}
	mdFlags(w, "global flags", app.Flags)
	for _, s := range sections {
		fmt.Fprintf(w, "\n## %s\n\n| | |\n|---|---|\n", upper(strings.ToLower(s.Title)))
		for _, item := range s.Items {
			fmt.Fprintf(w, "| `%s` | %s |\n", item[0], mdText(item[1]))
		}
	}
	return w.Flush()
}

func mdCommand(w io.Writer, app *cli.App, l Line, heading bool) {
	leaf := l.Leaf()
	if heading {
		fmt.Fprintf(w, "\n## %s\n", l.Name(app.HelpName))
	}
	fmt.Fprintf(w, "\n%s.\n\n```text\n%s\n```\n", mdText(upper(leaf.Usage)), Synopsis(app, l))
	mdDescription(w, leaf.Description)
	for _, group := range categories(leaf.Flags) {
		title := "flags"
		if group != "" {
			title += ": " + group
		}
		mdFlags(w, title, inCategory(leaf.Flags, group))
	}
}

func mdFlags(w io.Writer, title string, flags []cli.Flag) {
	fmt.Fprintf(w, "\n| %s | |\n|---|---|\n", title)
	for _, f := range flags {
		if visible(f) {
			label, text := flagText(f)
			fmt.Fprintf(w, "| `%s` | %s |\n", strings.TrimSpace(label), mdText(text))
		}
	}
}

// mdDescription writes paragraphs; lines that start with two spaces are a block of code.
func mdDescription(w io.Writer, text string) {
	if text = strings.TrimSpace(text); text == "" {
		return
	}
	fmt.Fprintln(w)
	literal := false
	for line := range strings.SplitSeq(text, "\n") {
		if code := strings.HasPrefix(line, "  "); code != literal {
			literal = code
			fmt.Fprint(w, map[bool]string{true: "\n```sh\n", false: "```\n\n"}[literal])
		}
		if literal {
			fmt.Fprintln(w, strings.TrimPrefix(line, "  "))
		} else {
			fmt.Fprintln(w, mdText(line))
		}
	}
	if literal {
		fmt.Fprint(w, "```\n")
	}
}

// mdText escapes text that is not code.
func mdText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`, "[", `\[`, "`", "\\`").Replace(
		s)
}

func upper(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
