package index

import (
	"context"

	"github.com/urfave/cli/v2"

	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	servecmd "github.com/operator-bindery/bindery/cmd/internal/serve"
	"github.com/operator-bindery/bindery/edit/change"
)

// RegistryCommand returns the group of opm's commands for databases. Here they also work on catalog directories.
func RegistryCommand(p *option.Session) *cli.Command {
	return p.GroupCommand("registry", "edit and serve index databases and catalog directories, under opm's names",
		registryAddCommand(p),
		registryRemoveCommand(p),
		registryPruneCommand(p),
		registryPruneStrandedCommand(p),
		registryTruncateCommand(p),
		servecmd.RegistryServeCommand(p),
		registryInitializeCommand(p),
		registryMirrorCommand(p),
	)
}

// registryOptions are the flags of a command of the registry group that edits.
type registryOptions struct {
	catalogcmd.EditOptions
	containerTool
	database string
}

// databaseFlag names the catalog that the commands of the group edit.
func (o *registryOptions) databaseFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "database", Aliases: []string{"d"}, Value: value, Destination: &o.database,
		Usage: "`PATH` of the database file or the catalog directory"}
}

const registryHelp = "The database file or catalog directory is changed completely or not at all."

func registryAddCommand(p *option.Session) *cli.Command {
	o := &registryOptions{}
	var bundles cli.StringSlice
	return &cli.Command{
		Name:  "add",
		Usage: "add bundles to a database or catalog",
		Description: registryHelp + ` A missing database is created.

Bundles are images in registries, layouts and archives, or bundle directories. All problems are reported
together; the exit status is 2 if the database already contains an image, and 3 if it contains another image
of the same bundle.` +
			program.Examples("bindery registry add -d index.db -b registry.example.com/acme/etcd:v0.9.5 --dry-run",
				"bindery registry add -d new.db --mode semver -b "+
					"registry.example.com/acme/etcd:v0.9.4,registry.example.com/acme/etcd:v0.9.5",
				"bindery registry add -d index.db -b new-bundle,registry.example.com/acme/etcd:v0.9.2 --permissive"),
		Flags: program.Flags([]cli.Flag{
			o.databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "bundle-images", Destination: &bundles, Aliases: []string{"b"},
				Usage: "add the bundles of `REFERENCES`"},
			o.containerTool.flag(),
		}, o.AddFlags(true), o.EditOptions.Flags(), []cli.Flag{o.PlatformFlag()}, o.Images.Flags()),
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error {
			if err := o.containerTool.check(p, &o.Registry); err != nil {
				return err
			}
			refs, err := program.Values(bundles.Value())
			if err != nil {
				return err
			}
			return o.edit(ctx, p, func(ctx context.Context) (change.Edit, error) { return o.Add(ctx, p, refs) })
		})),
	}
}

func registryRemoveCommand(p *option.Session) *cli.Command {
	o := &registryOptions{}
	var packages cli.StringSlice
	return &cli.Command{
		Name:  "rm",
		Usage: "remove packages from a database or catalog",
		Description: registryHelp + program.Examples("bindery registry rm -d index.db -o etcd",
			"bindery registry rm -d catalog -o etcd --dry-run"),
		Flags: program.Flags([]cli.Flag{
			o.databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "packages", Destination: &packages, Aliases: []string{"o"}, Usage: "remove `PACKAGES`"},
			o.PermissiveFlag(),
		}, o.EditOptions.Flags()),
		Action: program.Exactly(0, catalogcmd.WithList(p, "packages", &packages, func(ctx context.Context, _, packages []string) error {
			return o.edit(ctx, p, catalogcmd.Ready(o.Remove(packages)))
		})),
	}
}

func registryPruneCommand(p *option.Session) *cli.Command {
	o := &registryOptions{}
	var packages cli.StringSlice
	return &cli.Command{
		Name:  "prune",
		Usage: "remove all packages except some from a database or catalog",
		Description: registryHelp + program.Examples("bindery registry prune -d index.db -p etcd",
			"bindery registry prune -d catalog -p etcd --dry-run"),
		Flags: program.Flags([]cli.Flag{
			o.databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "packages", Destination: &packages, Aliases: []string{"p"}, Usage: "keep `PACKAGES`"},
			o.PermissiveFlag(),
		}, o.EditOptions.Flags()),
		Action: program.Exactly(0, catalogcmd.WithList(p, "packages", &packages, func(ctx context.Context, _, keep []string) error {
			return o.edit(ctx, p, catalogcmd.Ready(o.Prune(p, keep)))
		})),
	}
}

func registryPruneStrandedCommand(p *option.Session) *cli.Command {
	o := &registryOptions{}
	return &cli.Command{
		Name:        "prune-stranded",
		Usage:       "remove bundles without a channel from a database or catalog",
		Description: registryHelp + program.Examples("bindery registry prune-stranded -d index.db"),
		Flags:       program.Flags([]cli.Flag{o.databaseFlag("bundles.db")}, o.EditOptions.Flags()),
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error {
			return o.edit(ctx, p, catalogcmd.Ready(change.PruneStranded()))
		})),
	}
}

func registryTruncateCommand(p *option.Session) *cli.Command {
	o := &registryOptions{}
	var bundles cli.StringSlice
	return &cli.Command{
		Name: "deprecatetruncate", Hidden: p.Opm,
		Usage: "deprecate bundles and truncate their channels below them",
		Description: registryHelp + " Bundles are given by their image, or as PACKAGE/NAME." +
			program.Examples("bindery registry deprecatetruncate -d index.db -b etcd/etcdoperator.v0.9.2",
				"bindery registry deprecatetruncate -d catalog -b etcd/etcdoperator.v0.9.2 --dry-run --explain"),
		Flags: program.Flags([]cli.Flag{
			o.databaseFlag("index.db"),
			&cli.StringSliceFlag{Name: "bundle-images", Destination: &bundles, Aliases: []string{"b"}, Usage: "deprecate `BUNDLES`"},
		}, o.TruncateFlags(), o.EditOptions.Flags()),
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error {
			list, err := program.Values(bundles.Value())
			if err != nil {
				return err
			}
			return o.edit(ctx, p, catalogcmd.Ready(o.Truncate(p, list)))
		})),
	}
}

// edit edits --database. Errors about the path are reported before bundles are fetched.
func (o *registryOptions) edit(ctx context.Context, p *option.Session, prepare catalogcmd.Prepare) error {
	if err := o.CheckCatalog(p, o.database); err != nil {
		return err
	}
	e, err := prepare(ctx)
	if err != nil {
		return err
	}
	return o.InPlace(ctx, p, o.database, e)
}

// containerTool is accepted for compatibility with opm.
type containerTool struct{ tool string }

func (o *containerTool) flag() cli.Flag {
	return &cli.StringFlag{Name: "container-tool", Aliases: []string{"c"}, Value: "none", Destination: &o.tool,
		Usage: "ignored: no container `TOOL` is needed (none|docker|podman)"}
}

// check refuses the values that opm refuses.
func (o *containerTool) check(p *option.Session, r *option.Registry) error {
	switch o.tool {
	case "none", "docker", "podman", "":
	default:
		return cmdline.Usagef("invalid --container-tool value %q, expected (none|docker|podman)", o.tool)
	}
	named := o.tool == "docker" || o.tool == "podman"
	switch {
	case !p.Given("ca-file"):
	case p.SkipTLSVerify, p.Given("tls-verify") && !r.TLSVerify:
		return cmdline.Usagef("--ca-file must not be set with --skip-tls-verify: no certificate is verified then")
	case named:
		return cmdline.Usagef("--ca-file must not be set with --container-tool=%s: the tool has its own certificates",
			o.tool)
	}
	if named {
		p.Log.Info("--container-tool=" + o.tool + ": ignored, no container tool is needed")
	}
	return nil
}
