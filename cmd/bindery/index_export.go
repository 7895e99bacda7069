package main

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/render/export"
)

func (p *program) indexExportCommand() *cli.Command {
	return &cli.Command{
		Name:  "export",
		Usage: "export packages of an index as package manifests",
		Description: `Each package becomes a directory with its package.yaml and, per version, a directory
with the manifests of the bundle. Bundles are fetched from their images; those without an image are written
from the catalog.

The index is ` + strings.TrimPrefix(catalogHelp, "A reference is ") + `

Either all or nothing is written. A package that the folder already contains is extended: existing bundles
must be equal, and its package.yaml is replaced.` +
			examples("bindery index export -i index.db -p etcd -f exported",
				"bindery index export -i registry.example.com/acme/catalog:v1 -p etcd,silicom-sts-operator -c none"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "index", Aliases: []string{"i"}, Usage: "`REF` of the index"},
			&cli.StringSliceFlag{Name: "package", Aliases: []string{"p"},
				Usage: "export `PACKAGE` (default all); can be repeated"},
			&cli.StringSliceFlag{Name: "xpackage", Aliases: []string{"o"}, Hidden: true, Usage: "alias of --package"},
			&cli.StringFlag{Name: "download-folder", Aliases: []string{"f"}, Value: "downloaded",
				Usage: "`DIR` to write to"},
			containerToolFlag("none"),
			&cli.BoolFlag{Name: "debug", Hidden: true, Usage: "alias of --log-level debug"},
		}, readFlags()...),
		Action: exactly(0, p.indexExport),
	}
}

func (p *program) indexExport(c *cli.Context) error {
	if c.Bool("debug") {
		p.log = p.newLogger(p.stderr, p.logFormat(c.String("log-format")), slog.LevelDebug)
	}
	if err := p.checkContainerTool(c); err != nil {
		return err
	}
	if c.String("index") == "" {
		return cmdline.Usagef(`required flag(s) "index" not set`)
	}
	packages, err := cmdline.List(append(c.StringSlice("package"), c.StringSlice("xpackage")...))
	if err != nil {
		return err
	}
	o, err := p.renderOptions(c)
	if err != nil {
		return err
	}
	o.Allow = catalogKinds()
	o.Fetches = c.Int("jobs")
	index, folder := c.String("index"), c.String("download-folder")
	if folder == "" {
		return cmdline.Usagef("invalid --download-folder value %q, expected a directory", folder)
	}
	if err := checkApart(index, folder); err != nil {
		return err
	}
	if p.opm {
		p.log.Info("export from the index", "index", index, "package", fmt.Sprint(packages))
	}
	progress := p.progress()
	done, err := export.Run(c.Context, index, folder, export.Options{
		Render: o, Packages: packages,
		Warn: func(_, message string) { p.log.Warn(message) },
		Progress: func(done, total int, bundle string) {
			progress.Set(cmdline.State{What: "exporting", Done: done, All: total, Units: "bundles", Now: bundle})
		},
		Ready: func(pkg string) {
			if p.opm {
				p.log.Info("Writing package.yaml in " + filepath.Join(folder, pkg))
			}
		},
	})
	progress.Close()
	if err != nil {
		return p.opmMessage(notCatalog(index, err))
	}
	if !p.opm {
		text := fmt.Sprintf("wrote %s with %s to %q", count(len(done.Packages), "package"),
			count(done.Bundles, "bundle"), folder)
		if len(done.Written) == 0 {
			text = fmt.Sprintf("%q already has %s with %s", folder, count(len(done.Packages), "package"),
				count(done.Bundles, "bundle"))
		}
		p.log.Info(text)
	}
	return nil
}
