package read

import (
	"context"

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

// listOptions are the flags of "list".
type listOptions struct {
	option.Reading
	output, by string
	channels   cli.StringSlice
	headsOnly  bool
	lifecycle  bool
}

func (o *listOptions) flags(what string) []cli.Flag {
	flags := []cli.Flag{program.AnswerFlag(&o.output), o.CompatFlag("")}
	switch what {
	case "packages":
		flags = append(flags, &cli.BoolFlag{Name: "lifecycle", Destination: &o.lifecycle,
			Usage: "list how long their versions are supported, as the catalog says"})
	case "bundles":
		flags = append(flags, &cli.StringSliceFlag{Name: "channel", Destination: &o.channels,
			Usage: "only entries of `CHANNEL`; can be repeated"})
	}
	return append(flags, o.Reading.Flags()...)
}

func ListCommand(p *option.Session) *cli.Command {
	command := func(what, args, example string, low, high int, load option.ListLoader,
		table func(o *listOptions, l *list.Listing, pkg string) (any, list.Table, error)) *cli.Command {
		o := &listOptions{}
		valid, examples := validHelp, []string{example, example + " -o json"}
		if what == "packages" {
			examples = append(examples, example+" --lifecycle")
		}
		if high > 1 {
			valid += packageHelp
		}
		return &cli.Command{
			Name:        what,
			Usage:       "list the " + what + " of a catalog",
			ArgsUsage:   args,
			Description: option.CatalogHelp + valid + program.Examples(examples...),
			Flags:       o.flags(what),
			Action: program.Between(low, high, p.Action(func(ctx context.Context, args []string) error {
				return o.print(ctx, p, args, load, table)
			})),
		}
	}
	return p.GroupCommand("list", "list the contents of a catalog",
		command("packages", "REF", "bindery list packages catalog", 1, 1, list.LoadPackages,
			func(o *listOptions, l *list.Listing, _ string) (any, list.Table, error) {
				if o.lifecycle {
					rows := l.Lifecycles()
					return rows, list.LifecycleTable(rows), nil
				}
				rows := l.Packages()
				return rows, list.PackageTable(rows), nil
			}),
		command("channels", "REF [PACKAGE]", "bindery list channels index.db", 1, 2, nil,
			func(_ *listOptions, l *list.Listing, pkg string) (any, list.Table, error) {
				rows, err := l.Channels(pkg)
				return rows, list.ChannelTable(rows), err
			}),
		command("bundles", "REF [PACKAGE]", "bindery list bundles catalog etcd --channel alpha", 1, 2, nil,
			func(o *listOptions, l *list.Listing, pkg string) (any, list.Table, error) {
				return o.bundleRows(p, l, pkg)
			}),
		listImagesCommand(p),
	)
}

// bundleRows returns the channel entries that were asked for, by version; for opm by name, as it prints them.
func (o *listOptions) bundleRows(p *option.Session, l *list.Listing, pkg string) (any, list.Table, error) {
	rows, err := l.Bundles(pkg)
	if err != nil {
		return nil, list.Table{}, err
	}
	channels, err := program.Values(o.channels.Value())
	if err != nil {
		return nil, list.Table{}, err
	}
	if rows, err = rows.InChannels(channels); err != nil {
		return nil, list.Table{}, err
	}
	compat, err := o.Compat(p)
	if err != nil {
		return nil, list.Table{}, err
	}
	if compat != "" {
		return rows, rows.OPMTable(), nil
	}
	rows.SortByVersion()
	return rows, rows.Table(), nil
}

// print prints the table of a catalog.
func (o *listOptions) print(ctx context.Context, p *option.Session, args []string, load option.ListLoader,
	table func(*listOptions, *list.Listing, string) (any, list.Table, error)) error {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	l, pkg, err := o.listing(ctx, p, args, load)
	if err != nil {
		return err
	}
	rows, t, err := table(o, l, pkg)
	if err != nil {
		return err
	}
	if format.IsDocument() {
		return p.PrintValue(format, rows)
	}
	return p.PrintTable(t.Header, t.Rows...)
}

// listing reads the catalog that the first argument names, or only the package in the second argument. If the package
// is missing, the whole catalog is read, so that the error can suggest other names. load is as for ListingOf.
func (o *listOptions) listing(ctx context.Context, p *option.Session, args []string,
	load option.ListLoader) (_ *list.Listing, pkg string, err error) {
	if len(args) > 1 {
		pkg = args[1]
	}
	if pkg != "" && !p.Opm {
		if l, err := o.ListingOf(ctx, p, args[0], load, pkg); err != nil || len(l.Packages()) > 0 {
			return l, pkg, err
		}
	}
	l, err := o.ListingOf(ctx, p, args[0], load)
	return l, pkg, err
}
