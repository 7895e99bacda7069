package index

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/render/export"
)

func indexExportCommand(p *option.Session) *cli.Command {
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
			&cli.StringFlag{Name: "index", Aliases: []string{"i"}, Usage: "`REF` of the index"},
			&cli.StringSliceFlag{Name: "package", Aliases: []string{"p"},
				Usage: "export `PACKAGE` (default all); can be repeated"},
			&cli.StringSliceFlag{Name: "xpackage", Aliases: []string{"o"}, Hidden: true, Usage: "alias of --package"},
			&cli.StringFlag{Name: "download-folder", Aliases: []string{"f"}, Value: "downloaded",
				Usage: "`DIR` to write to"},
			containerToolFlag("none"),
			&cli.BoolFlag{Name: "debug", Hidden: true, Usage: "alias of --log-level debug"},
		}, option.ReadFlags()...),
		Action: program.Exactly(0, func(c *cli.Context) error { return indexExport(p, c) }),
	}
}

func indexExport(p *option.Session, c *cli.Context) error {
	if c.Bool("debug") {
		p.Log = p.NewLogger(p.Stderr, p.LogFormat(c.String("log-format")), slog.LevelDebug)
	}
	if err := checkContainerTool(p, c); err != nil {
		return err
	}
	if c.String("index") == "" {
		return cmdline.Usagef(`required flag(s) "index" not set`)
	}
	packages, err := cmdline.List(append(c.StringSlice("package"), c.StringSlice("xpackage")...))
	if err != nil {
		return err
	}
	o, err := p.RenderOptions(c)
	if err != nil {
		return err
	}
	o.Allow = option.CatalogKinds()
	o.Fetches = c.Int("jobs")
	index, folder := c.String("index"), c.String("download-folder")
	if folder == "" {
		return cmdline.Usagef("invalid --download-folder value %q, expected a directory", folder)
	}
	if err := option.CheckApart(index, folder); err != nil {
		return err
	}
	if p.Opm {
		p.Log.Info("export from the index", "index", index, "package", fmt.Sprint(packages))
	}
	progress := p.Progress()
	done, err := export.Run(c.Context, index, folder, export.Options{
		Render: o, Packages: packages,
		Warn: func(_, message string) { p.Log.Warn(message) },
		Progress: func(done, total int, bundle string) {
			progress.Set(cmdline.State{What: "exporting", Done: done, All: total, Units: "bundles", Now: bundle})
		},
		Ready: func(pkg string) {
			if p.Opm {
				p.Log.Info("Writing package.yaml in " + filepath.Join(folder, pkg))
			}
		},
	})
	progress.Close()
	if err != nil {
		return p.OpmMessage(option.NotCatalog(index, err))
	}
	if !p.Opm {
		text := fmt.Sprintf("wrote %s with %s to %q", program.Count(len(done.Packages), "package"),
			program.Count(done.Bundles, "bundle"), folder)
		if len(done.Written) == 0 {
			text = fmt.Sprintf("%q already has %s with %s", folder, program.Count(len(done.Packages), "package"),
				program.Count(done.Bundles, "bundle"))
		}
		p.Log.Info(text)
	}
	return nil
}
