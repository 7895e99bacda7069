package main

import (
	"errors"
	"fmt"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/list"
	"github.com/operator-bindery/bindery/render"
)

func (p *program) listCommand() *cli.Command {
	command := func(what, args, example string, low, high int, table func(l *list.Listing, pkg string) (any, list.Table, error)) *cli.Command {
		return &cli.Command{
			Name:        what,
			Usage:       "list the " + what + " of a catalog",
			ArgsUsage:   args,
			Description: catalogHelp + " The catalog must be valid." + examples(example, example+" -o json"),
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
			p.listImagesCommand(),
		},
	}
}

// alphaCommand holds opm's names for commands that have a shorter one.
func (p *program) alphaCommand() *cli.Command {
	return &cli.Command{
		Name: "alpha", Hidden: true, Usage: "opm's names for other commands",
		Action:      p.group,
		Subcommands: []*cli.Command{p.listCommand(), p.renderGraphCommand(), p.bundleCommand(), p.templateRenderCommand("alpha render-template"), p.templateConvertCommand("alpha convert-template")},
	}
}

func (p *program) listAction(low, high int, table func(*list.Listing, string) (any, list.Table, error)) cli.ActionFunc {
	action := func(c *cli.Context) error {
		format, err := listFormat(c, "json")
		if err != nil {
			return err
		}
		listing, err := p.listing(c)
		if err != nil {
			return err
		}
		rows, t, err := table(listing, c.Args().Get(1))
		if err != nil {
			return err
		}
		if format == "json" {
			return p.printJSON(rows)
		}
		return p.printTable(t.Header, t.Rows...)
	}
	if low == high {
		return exactly(low, action)
	}
	return between(low, high, action)
}

// listing reads the catalog that the first argument names.
func (p *program) listing(c *cli.Context) (*list.Listing, error) {
	return p.listingOf(c, c.Args().First())
}

// listingOf reads the catalog that a reference names.
func (p *program) listingOf(c *cli.Context, ref string) (*list.Listing, error) {
	o, err := p.renderOptions(c)
	if err != nil {
		return nil, err
	}
	o.Allow = catalogKinds()
	blobs, err := render.Reference(c.Context, ref, o)
	if err != nil {
		return nil, p.opmMessage(notCatalog(ref, err))
	}
	l, err := list.Load(blobs)
	if err != nil {
		return nil, p.opmMessage(notCatalog(ref, err))
	}
	return l, nil
}

// catalogKinds are the references that hold a catalog.
func catalogKinds() []render.Kind {
	return []render.Kind{render.CatalogDirectory, render.ManifestsDirectory, render.CatalogImage, render.Database, render.DatabaseImage}
}

// notCatalog says of a bundle, in opm's words, that it cannot be listed.
func notCatalog(ref string, err error) error {
	if errors.Is(err, render.ErrNotAllowed) {
		return fmt.Errorf("cannot list non-index %q", ref)
	}
	return err
}
