package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/internal/cliutil"
	"github.com/operator-bindery/bindery/list"
	"github.com/operator-bindery/bindery/render"
)

func (p *program) listCommand() *cli.Command {
	command := func(what, args, example string, low, high int, table func(l *list.Listing, pkg string) (any, list.Table, error)) *cli.Command {
		return &cli.Command{
			Name:        what,
			Usage:       "list the " + what + " of a catalog",
			ArgsUsage:   args,
			Description: referenceHelp + "\nThe catalog must be valid." + examples(example, example+" -o json"),
			Flags: append([]cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FORMAT` in place of a table (json)"},
				compatFlag(),
			}, readFlags()...),
			Action: p.listAction(low, high, table),
		}
	}
	return &cli.Command{
		Name:   "list",
		Usage:  "list what a catalog holds",
		Action: p.group,
		Subcommands: []*cli.Command{
			command("packages", "REF", "bindery list packages catalog", 1, 1, func(l *list.Listing, _ string) (any, list.Table, error) {
				rows := l.Packages()
				return rows, list.PackageTable(rows), nil
			}),
			command("channels", "REF [PACKAGE]", "bindery list channels index.db", 1, 2, func(l *list.Listing, pkg string) (any, list.Table, error) {
				rows, err := l.Channels(pkg)
				return rows, list.ChannelTable(rows), err
			}),
			command("bundles", "REF [PACKAGE]", "bindery list bundles catalog etcd", 1, 2, func(l *list.Listing, pkg string) (any, list.Table, error) {
				rows, err := l.Bundles(pkg)
				return rows, list.BundleTable(rows), err
			}),
		},
	}
}

// alphaCommand holds opm's names for commands that have a shorter one.
func (p *program) alphaCommand() *cli.Command {
	return &cli.Command{
		Name: "alpha", Hidden: true, Usage: "opm's names for other commands",
		Action:      p.group,
		Subcommands: []*cli.Command{p.listCommand(), p.bundleCommand(), p.templateRenderCommand("alpha render-template"), p.templateConvertCommand("alpha convert-template")},
	}
}

func (p *program) listAction(low, high int, table func(*list.Listing, string) (any, list.Table, error)) cli.ActionFunc {
	action := func(c *cli.Context) error {
		format, err := listFormat(c, "json")
		if err != nil {
			return err
		}
		o, err := p.renderOptions(c)
		if err != nil {
			return err
		}
		o.Allow = catalogKinds()
		blobs, err := render.Reference(c.Context, c.Args().First(), o)
		if err != nil {
			return p.opmMessage(notCatalog(c.Args().First(), err))
		}
		listing, err := list.Load(blobs)
		if err != nil {
			return p.opmMessage(notCatalog(c.Args().First(), err))
		}
		rows, t, err := table(listing, c.Args().Get(1))
		if err != nil {
			return err
		}
		if format == "json" {
			enc := json.NewEncoder(p.stdout)
			enc.SetIndent("", "    ")
			enc.SetEscapeHTML(false)
			return enc.Encode(rows)
		}
		var b bytes.Buffer
		if err := t.Write(&b, cliutil.Cell); err != nil {
			return fmt.Errorf("write the table: %w", err)
		}
		_, err = p.stdout.Write(b.Bytes())
		return err
	}
	if low == high {
		return exactly(low, action)
	}
	return between(low, high, action)
}

// catalogKinds are the references that hold a catalog.
func catalogKinds() []render.Kind {
	return []render.Kind{render.CatalogDirectory, render.CatalogImage, render.Database, render.DatabaseImage}
}

// notCatalog says of a bundle, in opm's words, that it cannot be listed.
func notCatalog(ref string, err error) error {
	if errors.Is(err, render.ErrNotAllowed) {
		return fmt.Errorf("cannot list non-index %q", ref)
	}
	return err
}
