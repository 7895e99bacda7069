package main

import (
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/render"
)

// validHelp describes what is validated before listing; packageHelp describes it for a single package.
const (
	validHelp   = "\nThe catalog must be valid."
	packageHelp = " With PACKAGE, only that package of a file-based catalog is read and checked."
)

func (p *program) listCommand() *cli.Command {
	command := func(what, args, example string, low, high int, load listLoader,
		table func(c *cli.Context, l *list.Listing, pkg string) (any, list.Table, error),
		own ...cli.Flag) *cli.Command {
		valid := validHelp
		if high > 1 {
			valid += packageHelp
		}
		return &cli.Command{
			Name:        what,
			Usage:       "list the " + what + " of a catalog",
			ArgsUsage:   args,
			Description: catalogHelp + valid + examples(example, example+" -o json"),
			Flags: slices.Concat([]cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"},
					Usage: "output `FORMAT` (json|yaml); a table by default"},
				compatFlag(),
			}, own, readFlags()),
			Action: p.listAction(low, high, load, table),
		}
	}
	return p.groupCommand("list", "list the contents of a catalog",
		command("packages", "REF", "bindery list packages catalog", 1, 1, list.LoadPackages,
			func(_ *cli.Context, l *list.Listing, _ string) (any, list.Table, error) {
				rows := l.Packages()
				return rows, list.PackageTable(rows), nil
			}),
		command("channels", "REF [PACKAGE]", "bindery list channels index.db", 1, 2, nil,
			func(_ *cli.Context, l *list.Listing, pkg string) (any, list.Table, error) {
				rows, err := l.Channels(pkg)
				return rows, list.ChannelTable(rows), err
			}),
		command("bundles", "REF [PACKAGE]", "bindery list bundles catalog etcd --channel alpha", 1, 2, nil,
			p.bundleRows, &cli.StringSliceFlag{Name: "channel", Usage: "only entries of `CHANNEL`; can be repeated"}),
		p.listImagesCommand(),
	)
}

// bundleRows returns the channel entries that were asked for, by version; for opm by name, as it prints them.
func (p *program) bundleRows(c *cli.Context, l *list.Listing, pkg string) (any, list.Table, error) {
	rows, err := l.Bundles(pkg)
	if err != nil {
		return nil, list.Table{}, err
	}
	channels, err := listFlag(c, "channel")
	if err != nil {
		return nil, list.Table{}, err
	}
	if rows, err = rows.InChannels(channels); err != nil {
		return nil, list.Table{}, err
	}
	compat, err := p.compat(c)
	if err != nil {
		return nil, list.Table{}, err
	}
	if compat != "" {
		return rows, rows.OPMTable(), nil
	}
	rows.SortByVersion()
	return rows, rows.Table(), nil
}

// alphaCommand groups opm's names of commands that have a shorter name here.
func (p *program) alphaCommand() *cli.Command {
	return &cli.Command{
		Name: "alpha", Hidden: true, Usage: "commands under their opm names",
		Action: p.group,
		Subcommands: []*cli.Command{p.listCommand(), p.renderGraphCommand(), p.bundleCommand(),
			p.templateRenderCommand("alpha render-template"), p.templateConvertCommand("alpha convert-template")},
	}
}

// listLoader reads a catalog for tables that need the manifests of bundles.
type listLoader func(iter.Seq2[declcfg.Blob, error]) (*list.Listing, error)

func (p *program) listAction(low, high int, load listLoader,
	table func(*cli.Context, *list.Listing, string) (any, list.Table, error)) cli.ActionFunc {
	action := func(c *cli.Context) error {
		format, err := listFormat(c, "json", "yaml")
		if err != nil {
			return err
		}
		listing, err := p.listing(c, load)
		if err != nil {
			return err
		}
		rows, t, err := table(c, listing, c.Args().Get(1))
		if err != nil {
			return err
		}
		if format != "" {
			return p.printValue(format, rows)
		}
		return p.printTable(t.Header, t.Rows...)
	}
	if low == high {
		return exactly(low, action)
	}
	return between(low, high, action)
}

// listing reads the catalog that the first argument names, or only the package in the second argument. If the package
// is missing, the whole catalog is read, so that the error can suggest other names. load is as for listingOf.
func (p *program) listing(c *cli.Context, load listLoader) (*list.Listing, error) {
	ref, pkg := c.Args().First(), c.Args().Get(1)
	if pkg != "" && !p.opm {
		if l, err := p.listingOf(c, ref, load, pkg); err != nil || len(l.Packages()) > 0 {
			return l, err
		}
	}
	return p.listingOf(c, ref, load)
}

// listingOf reads the catalog that a reference names. If packages are given, only these are read from a file-based
// catalog. If load is nil, manifests of bundles are not read.
func (p *program) listingOf(c *cli.Context, ref string, load listLoader, packages ...string) (*list.Listing, error) {
	o, err := p.renderOptions(c)
	if err != nil {
		return nil, err
	}
	o.Allow, o.Packages = catalogKinds(), packages
	if load == nil {
		o.Skeleton, load = true, list.Load
	}
	blobs, err := o.Render(c.Context, ref)
	if err != nil {
		return nil, p.opmMessage(notCatalog(ref, err))
	}
	l, err := load(blobs)
	if err != nil {
		return nil, p.opmMessage(notCatalog(ref, err))
	}
	return l, nil
}

// catalogKinds are the kinds of references with a catalog.
func catalogKinds() []render.Kind {
	return []render.Kind{render.CatalogDirectory, render.ManifestsDirectory, render.CatalogImage, render.Database,
		render.DatabaseImage}
}

// notCatalog returns opm's message for a bundle, which cannot be listed.
func notCatalog(ref string, err error) error {
	if errors.Is(err, render.ErrNotAllowed) {
		return fmt.Errorf("cannot list non-index %q", ref)
	}
	return err
}
