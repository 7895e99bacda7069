package read

import (
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/list"
)

// validHelp describes what is validated before listing; packageHelp describes it for a single package.
const (
	validHelp   = "\nThe catalog must be valid."
	packageHelp = " With PACKAGE, only that package of a file-based catalog is read and checked."
)

func ListCommand(p *option.Session) *cli.Command {
	command := func(what, args, example string, low, high int, load option.ListLoader,
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
			Description: option.CatalogHelp + valid + program.Examples(example, example+" -o json"),
			Flags: slices.Concat([]cli.Flag{
				&cli.StringFlag{Name: "output", Aliases: []string{"o"},
					Usage: "output `FORMAT` (json|yaml); a table by default"},
				program.CompatFlag(),
			}, own, option.ReadFlags()),
			Action: listAction(p, low, high, load, table),
		}
	}
	return p.GroupCommand("list", "list the contents of a catalog",
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
			func(c *cli.Context, l *list.Listing, pkg string) (any, list.Table, error) {
				return bundleRows(p, c, l, pkg)
			}, &cli.StringSliceFlag{Name: "channel", Usage: "only entries of `CHANNEL`; can be repeated"}),
		listImagesCommand(p),
	)
}

// bundleRows returns the channel entries that were asked for, by version; for opm by name, as it prints them.
func bundleRows(p *option.Session, c *cli.Context, l *list.Listing, pkg string) (any, list.Table, error) {
	rows, err := l.Bundles(pkg)
	if err != nil {
		return nil, list.Table{}, err
	}
	channels, err := program.ListFlag(c, "channel")
	if err != nil {
		return nil, list.Table{}, err
	}
	if rows, err = list.Keep(rows, channels); err != nil {
		return nil, list.Table{}, err
	}
	compat, err := p.Compat(c)
	if err != nil {
		return nil, list.Table{}, err
	}
	if compat != "" {
		return rows, list.OPMBundleTable(rows), nil
	}
	list.SortByVersion(rows)
	return rows, list.BundleTable(rows), nil
}

func listAction(p *option.Session, low, high int, load option.ListLoader,
	table func(*cli.Context, *list.Listing, string) (any, list.Table, error)) cli.ActionFunc {
	action := func(c *cli.Context) error {
		format, err := program.ListFormat(c, "json", "yaml")
		if err != nil {
			return err
		}
		listing, err := listing(p, c, load)
		if err != nil {
			return err
		}
		rows, t, err := table(c, listing, c.Args().Get(1))
		if err != nil {
			return err
		}
		if format != "" {
			return p.PrintValue(format, rows)
		}
		return p.PrintTable(t.Header, t.Rows...)
	}
	if low == high {
		return program.Exactly(low, action)
	}
	return program.Between(low, high, action)
}

// listing reads the catalog that the first argument names, or only the package in the second argument. If the package
// is missing, the whole catalog is read, so that the error can suggest other names. load is as for listingOf.
func listing(p *option.Session, c *cli.Context, load option.ListLoader) (*list.Listing, error) {
	ref, pkg := c.Args().First(), c.Args().Get(1)
	if pkg != "" && !p.Opm {
		if l, err := p.ListingOf(c, ref, load, pkg); err != nil || len(l.Packages()) > 0 {
			return l, err
		}
	}
	return p.ListingOf(c, ref, load)
}
