package index

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/render/export"
)

// exportOptions are the flags of "index export".
type exportOptions struct {
	option.Reading
	containerTool
	index, folder    string
	packages, others cli.StringSlice
	debug            bool
}

func indexExportCommand(p *option.Session) *cli.Command {
	o := &exportOptions{}
	return &cli.Command{
		Name:  "export",
		Usage: "export packages of an index as package manifests",
		Description: `Each package becomes a directory with its package.yaml and, per version, a directory
with the manifests of the bundle. Bundles are fetched from their images; those without an image are written
from the catalog.

The index is ` + strings.TrimPrefix(option.CatalogHelp, "A reference is ") + `

Either all or nothing is written. A package that the folder already contains is extended: existing bundles
must be equal, and its package.yaml is replaced.` +
			program.Examples("bindery index export -i index.db -p etcd -f exported",
				"bindery index export -i registry.example.com/acme/catalog:v1 -p etcd,silicom-sts-operator -c none"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "index", Destination: &o.index, Aliases: []string{"i"}, Usage: "`REF` of the index"},
			&cli.StringSliceFlag{Name: "package", Destination: &o.packages, Aliases: []string{"p"},
				Usage: "export `PACKAGE` (default all); can be repeated"},
			&cli.StringSliceFlag{Name: "xpackage", Destination: &o.others, Aliases: []string{"o"}, Hidden: true, Usage: "alias of --package"},
			&cli.StringFlag{Name: "download-folder", Destination: &o.folder, Aliases: []string{"f"}, Value: "downloaded",
				Usage: "`DIR` to write to"},
			o.containerTool.flag(),
			&cli.BoolFlag{Name: "debug", Destination: &o.debug, Hidden: true, Usage: "alias of --log-level debug"},
		}, o.Reading.Flags()...),
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error { return o.run(ctx, p) })),
	}
}

func (o *exportOptions) run(ctx context.Context, p *option.Session) error {
	if o.debug {
		p.Log = p.NewLogger(p.Stderr, p.LogFormat(p.Command.String("log-format")), slog.LevelDebug)
	}
	if err := o.containerTool.check(p, &o.Registry); err != nil {
		return err
	}
	if o.index == "" {
		return cmdline.Usagef(`required flag(s) "index" not set`)
	}
	packages, err := cmdline.List(append(o.packages.Value(), o.others.Value()...))
	if err != nil {
		return err
	}
	with, err := o.Options(ctx, p)
	if err != nil {
		return err
	}
	with.Allow = option.CatalogKinds()
	with.Fetches = o.Jobs
	if o.folder == "" {
		return cmdline.Usagef("invalid --download-folder value %q, expected a directory", o.folder)
	}
	if err := atomicfs.CheckApart(o.index, o.folder); err != nil {
		return err
	}
	if p.Opm {
		p.Log.Info("export from the index", "index", o.index, "package", fmt.Sprint(packages))
	}
	progress := p.Progress()
	done, err := export.Run(ctx, o.index, o.folder, export.Options{
		Render: with, Packages: packages,
		Warn: func(_, message string) { p.Log.Warn(message) },
		Progress: func(done, total int, bundle string) {
			progress.Set(cmdline.State{What: "exporting", Done: done, All: total, Units: "bundles", Now: bundle})
		},
		Ready: func(pkg string) {
			if p.Opm {
				p.Log.Info("Writing package.yaml in " + filepath.Join(o.folder, pkg))
			}
		},
	})
	progress.Close()
	if err != nil {
		return p.OpmMessage(option.NotCatalog(o.index, err))
	}
	if !p.Opm {
		text := fmt.Sprintf("wrote %s with %s to %q", program.Count(len(done.Packages), "package"),
			program.Count(done.Bundles, "bundle"), o.folder)
		if len(done.Written) == 0 {
			text = fmt.Sprintf("%q already has %s with %s", o.folder, program.Count(len(done.Packages), "package"),
				program.Count(done.Bundles, "bundle"))
		}
		p.Log.Info(text)
	}
	return nil
}
