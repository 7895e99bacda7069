package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg/diff"
	"github.com/operator-bindery/bindery/declcfg/edit"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/render"
)

func (p *program) diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "tell in what two catalogs differ",
		ArgsUsage: "OLD NEW",
		Description: referenceHelp + "\n\n" +
			"What the catalogs mean is compared: the number and format of files and the order of anything are no differences. They\n" +
			"need not be valid. Exit status 0 says that they are the same, 1 that they differ. An error is 1 as well, but then there is\n" +
			"no answer on standard output, and the error is on standard error." +
			examples("bindery diff index.db index.db", "bindery diff catalog catalog --only heads --only edges", "bindery diff catalog catalog -o json"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text", Usage: "`FORMAT` of the answer (text|json)"},
			&cli.StringSliceFlag{Name: "only", Usage: "compare only the `SECTION` (" + sectionNames() + "); can be repeated"},
			&cli.StringFlag{Name: "color", Aliases: []string{"colour"}, Value: "auto", Usage: "`WHEN` to mark the text with colours (auto|always|never)"},
			migrateLevelFlag(""),
			&cli.BoolFlag{Name: "migrate", Usage: "compare after all migration levels"},
			compatFlag(),
		}, readFlags()...),
		Action: exactly(2, p.diff),
	}
}

func sectionNames() string {
	var names []string
	for _, s := range diff.Sections() {
		names = append(names, string(s))
	}
	return strings.Join(names, "|")
}

func (p *program) diff(c *cli.Context) error {
	format := c.String("output")
	if format != "text" && format != "json" {
		return cmdline.Usagef("invalid --output value %q, expected (text|json)", format)
	}
	colour, err := p.colour(c)
	if err != nil {
		return err
	}
	var o diff.Options
	for _, name := range c.StringSlice("only") {
		section, err := diff.ParseSection(name)
		if err != nil {
			return cmdline.Usagef("invalid --only value %q, expected (%s)", name, sectionNames())
		}
		o.Only = append(o.Only, section)
	}
	if c.Bool("migrate") && c.IsSet("migrate-level") {
		return cmdline.Usagef("give one of --migrate and --migrate-level")
	}
	read, err := p.renderOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("migrate") {
		read.Level = edit.LatestLevel()
	}
	if read.Jobs == 0 { // both are read at the same time
		read.Jobs = (runtime.GOMAXPROCS(0) + 1) / 2
	}
	old, err := render.Reference(c.Context, c.Args().Get(0), read)
	if err != nil {
		return err
	}
	new, err := render.Reference(c.Context, c.Args().Get(1), read)
	if err != nil {
		return err
	}
	report, err := diff.Compare(old, new, o)
	if err != nil {
		return err
	}
	if format == "json" {
		err = p.printJSON(report)
	} else {
		err = p.spooled(c.Context, func(w io.Writer) error {
			return report.WriteText(w, diff.TextOptions{Colour: colour, Clean: printable.Cell})
		})
	}
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if !report.Same {
		return &cmdline.ExitStatus{Status: 1}
	}
	return nil
}

// colour reads --color.
func (p *program) colour(c *cli.Context) (bool, error) {
	switch c.String("color") {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		f, ok := p.stdout.W.(*os.File)
		return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "", nil
	}
	return false, cmdline.Usagef("invalid --color value %q, expected (auto|always|never)", c.String("color"))
}
