package read

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	bundlecmd "github.com/operator-bindery/bindery/cmd/internal/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/diff"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/printable"
)

// diffOptions are the flags of "diff".
type diffOptions struct {
	option.Reading
	output, color      string
	only               cli.StringSlice
	migrate, manifests bool
	settings           bundlecmd.Settings
	runtime            string // of OLM v1
}

// DiffCommand returns "diff".
func DiffCommand(p *option.Session) *cli.Command {
	o := &diffOptions{}
	return &cli.Command{
		Name:      "diff",
		Usage:     "compare two catalogs, or what two bundles install",
		ArgsUsage: "OLD NEW",
		Description: option.ReferenceHelp + `

Compares the meaning of the catalogs: the number and format of files and any order are ignored. The catalogs
need not be valid. The exit status is 0 if they are equal and 1 if they differ. It is also 1 on an error, but
then standard output is empty and the error is on standard error.

With --manifests OLD and NEW are bundles, or directories or files of manifests that "bundle manifests" wrote.
The answer is what an upgrade under OLM v1 would apply: permissions first, as what each service account gains
and loses, then CustomResourceDefinitions, then the fields of all other objects.` +
			program.Examples("bindery diff index.db index.db", "bindery diff catalog catalog --only heads --only edges",
				"bindery diff catalog catalog -o json",
				"bindery diff --manifests bundle bundle --watch-namespace etcd --install-namespace etcd"),
		Flags: append([]cli.Flag{
			program.AnswerFlag(&o.output),
			&cli.StringSliceFlag{Name: "only", Destination: &o.only,
				Usage: "compare `SECTION` only (" + sectionNames() + "); can be repeated"},
			&cli.StringFlag{Name: "color", Aliases: []string{"colour"}, Value: "auto", Destination: &o.color,
				Usage: "`WHEN` to colour the text (auto|always|never)"},
			o.LevelFlag(""),
			&cli.BoolFlag{Name: "migrate", Usage: "apply all migrations before comparing", Destination: &o.migrate},
			o.CompatFlag(""),
		}, append(o.manifestsFlags(), o.Reading.Flags()...)...),
		Action: program.Exactly(2, p.Action(func(ctx context.Context, args []string) error {
			return compare(ctx, p, o, args[0], args[1])
		})),
	}
}

func sectionNames() string {
	var names []string
	for _, s := range diff.Sections() {
		names = append(names, string(s))
	}
	return strings.Join(names, "|")
}

func compare(ctx context.Context, p *option.Session, o *diffOptions, before, after string) error {
	if err := o.checkFlags(p); err != nil {
		return err
	}
	if o.manifests {
		return compareManifests(ctx, p, o, before, after)
	}
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	colour, err := o.colour(p)
	if err != nil {
		return err
	}
	var with diff.Options
	for _, name := range o.only.Value() {
		section, err := diff.ParseSection(name)
		if err != nil {
			return cmdline.Usagef("invalid --only value %q, expected (%s)", name, sectionNames())
		}
		with.Only = append(with.Only, section)
	}
	if o.migrate && p.Given("migrate-level") {
		return cmdline.Usagef("--migrate and --migrate-level are mutually exclusive")
	}
	read, err := o.Options(ctx, p, before, after)
	if err != nil {
		return err
	}
	if o.migrate {
		read.Level = edit.LevelLatest
	}
	if read.Jobs == 0 { // both catalogs are read concurrently
		read.Jobs = (runtime.GOMAXPROCS(0) + 1) / 2
	}
	old, err := read.Render(ctx, before)
	if err != nil {
		return err
	}
	current, err := read.Render(ctx, after)
	if err != nil {
		return err
	}
	report, err := diff.Compare(old, current, with)
	if err != nil {
		return err
	}
	if format.IsDocument() {
		err = p.PrintValue(format, report)
	} else {
		err = p.Spooled(ctx, func(w io.Writer) error {
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
func (o *diffOptions) colour(p *option.Session) (bool, error) {
	switch o.color {
	case "always":
		return true, nil
	case "never":
		return false, nil
	case "auto":
		f, ok := p.Stdout.W.(*os.File)
		return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("NO_COLOR") == "", nil
	}
	return false, cmdline.Usagef("invalid --color value %q, expected (auto|always|never)", o.color)
}
