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
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/printable"
)

func (p *program) diffCommand() *cli.Command {
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare two catalogs, or what two bundles install",
		ArgsUsage: "OLD NEW",
		Description: referenceHelp + `

Compares the meaning of the catalogs: the number and format of files and any order are ignored. The catalogs
need not be valid. The exit status is 0 if they are equal and 1 if they differ. It is also 1 on an error, but
then standard output is empty and the error is on standard error.

With --manifests OLD and NEW are bundles, or directories or files of manifests that "bundle manifests" wrote.
The answer is what an upgrade under OLM v1 would apply: permissions first, as what each service account gains
and loses, then CustomResourceDefinitions, then the fields of all other objects.` +
			examples("bindery diff index.db index.db", "bindery diff catalog catalog --only heads --only edges",
				"bindery diff catalog catalog -o json",
				"bindery diff --manifests bundle bundle --watch-namespace etcd --install-namespace etcd"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "text",
				Usage: "output `FORMAT` (text|json)"},
			&cli.StringSliceFlag{Name: "only",
				Usage: "compare `SECTION` only (" + sectionNames() + "); can be repeated"},
			&cli.StringFlag{Name: "color", Aliases: []string{"colour"}, Value: "auto",
				Usage: "`WHEN` to colour the text (auto|always|never)"},
			migrateLevelFlag(""),
			&cli.BoolFlag{Name: "migrate", Usage: "apply all migrations before comparing"},
			compatFlag(),
		}, append(diffManifestsFlags(), readFlags()...)...),
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
	if err := checkDiffFlags(c); err != nil {
		return err
	}
	if c.Bool("manifests") {
		return p.diffManifests(c)
	}
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
		return cmdline.Usagef("--migrate and --migrate-level are mutually exclusive")
	}
	read, err := p.renderOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("migrate") {
		read.Level = edit.LatestLevel()
	}
	if read.Jobs == 0 { // both catalogs are read concurrently
		read.Jobs = (runtime.GOMAXPROCS(0) + 1) / 2
	}
	old, err := read.Render(c.Context, c.Args().Get(0))
	if err != nil {
		return err
	}
	current, err := read.Render(c.Context, c.Args().Get(1))
	if err != nil {
		return err
	}
	report, err := diff.Compare(old, current, o)
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
