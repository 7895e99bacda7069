package catalog

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/edit/change"
)

// Command returns the group of commands that edit catalogs, with bindery's own names and flags.
func Command(p *option.Session) *cli.Command {
	return p.GroupCommand("catalog", "edit and publish catalogs: directories and index databases",
		catalogAddCommand(p),
		catalogRemoveCommand(p),
		catalogPruneCommand(p),
		catalogPruneStrandedCommand(p),
		catalogPromoteCommand(p),
		catalogDemoteCommand(p),
		catalogFormatCommand(p),
		catalogDeprecateCommand(p),
		catalogMergeCommand(p),
		catalogFilterCommand(p),
		catalogSiteCommand(p),
	)
}

const catalogEditHelp = "CATALOG is a catalog directory or an index database, and is edited in place, completely or " +
	"not at all. Only files of\n" +
	"changed packages are written. CATALOG can also be an image of either: the result is then a new image, named " +
	"by -t.\n" +
	"--dry-run shows the changes, --explain their reasons."

func catalogAddCommand(p *option.Session) *cli.Command {
	o := &EditOptions{referenced: true}
	return &cli.Command{
		Name:      "add",
		Usage:     "add bundles to a catalog",
		ArgsUsage: "CATALOG BUNDLE...",
		Description: catalogEditHelp + `

A bundle is an image in a registry, layout or archive, a bundle directory, or a directory of package
manifests, of which all bundles are added. Its annotations name the package and the channels. In mode
replaces, its ClusterServiceVersion names what it replaces and skips; in mode semver it replaces the next
lower version of its channel; in mode semver-skippatch it also skips lower patch versions.` +
			program.Examples("bindery catalog add catalog registry.example.com/acme/etcd:v0.9.5",
				"bindery catalog add registry.example.com/acme/catalog:v1 registry.example.com/acme/etcd:v0.9.5 -t "+
					"registry.example.com/acme/catalog:v2",
				"bindery catalog add new registry.example.com/acme/etcd:v0.9.4 registry.example.com/acme/etcd:v0.9.5 "+
					"--create --mode semver",
				"bindery catalog add catalog new-bundle --image-ref-template "+
					"registry.example.com/acme/{{.Package}}:v{{.Version}} --dry-run --explain"),
		Flags: o.catalogFlags(o.createFlags(), o.AddFlags(false)),
		Action: program.AtLeast(2, p.Action(func(ctx context.Context, args []string) error {
			return o.edit(ctx, p, args[0], func(ctx context.Context) (change.Edit, error) { return o.Add(ctx, p, args[1:]) })
		})),
	}
}

func catalogRemoveCommand(p *option.Session) *cli.Command {
	o := &EditOptions{}
	return &cli.Command{
		Name:      "rm",
		Usage:     "remove packages, channels, or bundles of channels from a catalog",
		ArgsUsage: "CATALOG PACKAGE[/CHANNEL[/BUNDLE]]...",
		Description: catalogEditHelp + `

What a removed bundle replaced is replaced, and the bundle itself skipped, by what replaced it, so that an
installation of it still gets to the head. Bundles that are left in no channel are removed, and a default
channel is replaced by the channel with the highest head. A package keeps at least one channel.` +
			program.Examples("bindery catalog rm catalog etcd",
				"bindery catalog rm index.db etcd --dry-run",
				"bindery catalog rm catalog etcd/clusterwide-alpha --explain",
				"bindery catalog rm catalog etcd/singlenamespace-alpha/etcdoperator.v0.9.2 --dry-run",
				"bindery catalog rm oci:catalog.oci:v1 etcd -t example.com/acme/catalog:v2"),
		Flags: o.catalogFlags([]cli.Flag{o.PermissiveFlag()}),
		Action: program.AtLeast(2, p.Action(func(ctx context.Context, args []string) error {
			return o.edit(ctx, p, args[0], func(context.Context) (change.Edit, error) { return o.takeOut(args[1:]) })
		})),
	}
}

func catalogPruneCommand(p *option.Session) *cli.Command {
	o := &EditOptions{}
	var keep cli.StringSlice
	return &cli.Command{
		Name:        "prune",
		Usage:       "remove all packages except some from a catalog",
		ArgsUsage:   "CATALOG --keep PACKAGE",
		Description: catalogEditHelp + program.Examples("bindery catalog prune index.db --keep etcd,prometheus"),
		Flags: o.catalogFlags([]cli.Flag{
			&cli.StringSliceFlag{Name: "keep", Destination: &keep, Aliases: []string{"k"}, Usage: "keep `PACKAGES`"},
			o.PermissiveFlag(),
		}),
		Action: program.Exactly(1, WithList(p, "keep", &keep, func(ctx context.Context, args, keep []string) error {
			return o.edit(ctx, p, args[0], Ready(o.Prune(p, keep)))
		})),
	}
}

func catalogPruneStrandedCommand(p *option.Session) *cli.Command {
	o := &EditOptions{}
	return &cli.Command{
		Name:        "prune-stranded",
		Usage:       "remove bundles without a channel from a catalog",
		ArgsUsage:   "CATALOG",
		Description: catalogEditHelp + program.Examples("bindery catalog prune-stranded catalog"),
		Flags:       o.catalogFlags(),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return o.edit(ctx, p, args[0], Ready(change.PruneStranded()))
		})),
	}
}

func catalogPromoteCommand(p *option.Session) *cli.Command {
	o := &EditOptions{}
	var channels cli.StringSlice
	var asDefault bool
	return &cli.Command{
		Name:      "promote",
		Usage:     "add bundles of a catalog to another channel",
		ArgsUsage: "CATALOG BUNDLE... --channel CHANNEL",
		Description: catalogEditHelp + `

A bundle is given as NAME, PACKAGE/NAME or image. It becomes the head of the channel, and its version must be
higher than that of the current head. The channel is created if it does not exist.` +
			program.Examples("bindery catalog promote index.db etcdoperator.v0.9.4 --channel stable",
				"bindery catalog promote index.db etcd/etcdoperator.v0.9.4 --channel stable --default --explain"),
		Flags: o.catalogFlags([]cli.Flag{
			&cli.StringSliceFlag{Name: "channel", Destination: &channels, Aliases: []string{"c"}, Usage: "add the bundles to `CHANNEL`, or PACKAGE/CHANNEL"},
			&cli.BoolFlag{Name: "default", Destination: &asDefault, Usage: "make it the package's default channel"},
		}),
		Action: program.AtLeast(2, WithList(p, "channel", &channels, func(ctx context.Context, args, channels []string) error {
			return o.edit(ctx, p, args[0], func(context.Context) (change.Edit, error) {
				return promote(args[1:], channels, asDefault)
			})
		})),
	}
}

func catalogDemoteCommand(p *option.Session) *cli.Command {
	o := &EditOptions{}
	var channels cli.StringSlice
	return &cli.Command{
		Name:      "demote",
		Usage:     "take bundles of a catalog out of a channel, as the way back from promote",
		ArgsUsage: "CATALOG BUNDLE... --channel CHANNEL",
		Description: catalogEditHelp + `

A bundle is given as NAME, PACKAGE/NAME or image, and stays in its other channels; "catalog rm" removes one
from its last channel. The next lower bundle becomes the head of the channel, and a channel without bundles is
removed. A cluster that has installed the bundle keeps it until the channel has a higher one.` +
			program.Examples("bindery catalog demote catalog etcdoperator.v0.9.0 --channel singlenamespace-alpha",
				"bindery catalog demote index.db etcd/etcdoperator.v0.9.0 --channel clusterwide-alpha --dry-run"),
		Flags: o.catalogFlags([]cli.Flag{
			&cli.StringSliceFlag{Name: "channel", Destination: &channels, Aliases: []string{"c"}, Usage: "take the bundles out of `CHANNEL`"}}),
		Action: program.AtLeast(2, WithList(p, "channel", &channels, func(ctx context.Context, args, channels []string) error {
			return o.edit(ctx, p, args[0], Ready(o.demote(args[1:], channels)))
		})),
	}
}

func catalogDeprecateCommand(p *option.Session) *cli.Command {
	o := &EditOptions{}
	var m marks
	var channels, packages cli.StringSlice
	var undo bool
	return &cli.Command{
		Name:      "deprecate",
		Usage:     "deprecate bundles, channels and packages of a catalog",
		ArgsUsage: "CATALOG [BUNDLE...] --message TEXT",
		Description: catalogEditHelp + `

Adds an entry with the message to olm.deprecations; what is deprecated stays installable. A bundle is given as
NAME, PACKAGE/NAME or image. --truncate also ends the upgrade graph at the bundles: everything below them is
removed from their channels. A database stores no messages, and deprecations of truncated graphs only.` +
			program.Examples("bindery catalog deprecate catalog etcdoperator.v0.9.0 --message unsafe",
				"bindery catalog deprecate catalog --channel etcd/alpha --package etcd --message unmaintained",
				"bindery catalog deprecate index.db etcd/etcdoperator.v0.9.2 --truncate"),
		Flags: o.catalogFlags([]cli.Flag{
			&cli.StringFlag{Name: "message", Destination: &m.message, Aliases: []string{"m"},
				Usage: "`TEXT` that explains the deprecation to users"},
			&cli.StringSliceFlag{Name: "channel", Destination: &channels, Usage: "deprecate the channels `PACKAGE/CHANNEL`, or CHANNEL of the only package that has it"},
			&cli.StringSliceFlag{Name: "package", Destination: &packages, Usage: "deprecate `PACKAGES`"},
			&cli.BoolFlag{Name: "undo", Destination: &undo, Usage: "remove deprecations"},
			&cli.BoolFlag{Name: "truncate", Destination: &m.truncate, Usage: "remove everything below the bundles from their channels"},
		}, o.TruncateFlags()),
		Action: program.AtLeast(1, p.Action(func(ctx context.Context, args []string) (err error) {
			m.bundles = args[1:]
			if m.channels, err = program.Values(channels.Value()); err != nil {
				return err
			}
			if m.packages, err = program.Values(packages.Value()); err != nil {
				return err
			}
			if err := o.checkMarks(p, m, undo); err != nil {
				return err
			}
			return o.edit(ctx, p, args[0], func(context.Context) (change.Edit, error) { return o.deprecate(p, m) })
		})),
	}
}

// checkMarks refuses flags of "catalog deprecate" that do not go together.
func (o *EditOptions) checkMarks(p *option.Session, m marks, undo bool) error {
	switch {
	case len(m.bundles)+len(m.channels)+len(m.packages) == 0:
		return cmdline.Usagef("nothing to deprecate: expected bundles, --channel or --package")
	case undo && (m.truncate || p.Given("message")):
		return cmdline.Usagef("--undo cannot be combined with --message or --truncate")
	case m.truncate && len(m.bundles) == 0:
		return cmdline.Usagef("--truncate needs a bundle to end the graph at")
	case !undo && m.message == "" && (!m.truncate || len(m.channels)+len(m.packages) > 0):
		e := cmdline.Usagef("required flag(s) \"message\" not set")
		e.Hint = "explain the deprecation with --message, or remove one with --undo"
		return e
	case !m.truncate && (o.allowPackageRemoval || o.permissive):
		return cmdline.Usagef("--allow-package-removal and --permissive require --truncate")
	}
	return nil
}

func catalogMergeCommand(p *option.Session) *cli.Command {
	o := &EditOptions{}
	var replace bool
	return &cli.Command{
		Name:      "merge",
		Usage:     "merge other catalogs into a catalog",
		ArgsUsage: "CATALOG OTHER...",
		Description: catalogEditHelp + `

OTHER is a catalog directory, an index database, or an image of one. If several catalogs contain a package,
its channels, bundles and deprecations are merged; contradictions are an error. With --replace the last
catalog's package is used.` +
			program.Examples("bindery catalog merge catalog index.db --replace",
				"bindery catalog merge new index.db --create --migrate-level bundle-object-to-csv-metadata",
				"bindery catalog merge catalog registry.example.com/acme/catalog:v1 --replace --dry-run"),
		Flags: o.catalogFlags(o.createFlags(), []cli.Flag{
			&cli.BoolFlag{Name: "replace", Destination: &replace, Usage: "take a package that several catalogs contain from the last one"},
			o.addedLevelFlag(),
		}),
		Action: program.AtLeast(2, p.Action(func(ctx context.Context, args []string) error {
			return o.edit(ctx, p, args[0], func(ctx context.Context) (change.Edit, error) {
				return o.merge(ctx, p, args[1:], replace)
			})
		})),
	}
}
