package index

import (
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

// databaseFlag names the catalog that the commands of the group edit.
func databaseFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "database", Aliases: []string{"d"}, Value: value,
		Usage: "`PATH` of the database file or the catalog directory"}
}

const registryHelp = "The database file or catalog directory is changed completely or not at all."

func registryAddCommand(p *option.Session) *cli.Command {
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
			databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "bundle-images", Aliases: []string{"b"},
				Usage: "add the bundles of `REFERENCES`"},
			containerToolFlag("none"),
		}, catalogcmd.AddFlags(true), catalogcmd.EditFlags(), []cli.Flag{option.PlatformFlag()}, option.ImageFlags()),
		Action: program.Exactly(0, func(c *cli.Context) error {
			if err := checkContainerTool(p, c); err != nil {
				return err
			}
			refs, err := program.ListFlag(c, "bundle-images")
			if err != nil {
				return err
			}
			return registryEdit(p, c, func() (change.Edit, error) { return catalogcmd.AddEdit(p, c, refs) })
		}),
	}
}

func registryRemoveCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:  "rm",
		Usage: "remove packages from a database or catalog",
		Description: registryHelp + program.Examples("bindery registry rm -d index.db -o etcd",
			"bindery registry rm -d catalog -o etcd --dry-run"),
		Flags: program.Flags([]cli.Flag{
			databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "packages", Aliases: []string{"o"}, Usage: "remove `PACKAGES`"},
			catalogcmd.PermissiveFlag(),
		}, catalogcmd.EditFlags()),
		Action: program.Exactly(0, catalogcmd.ListEdit(func(c *cli.Context, prepare func() (change.Edit, error)) error { return registryEdit(p, c, prepare) }, "packages", func(c *cli.Context, packages []string) (change.Edit, error) {
			return catalogcmd.RemoveEdit(p, c, packages)
		})),
	}
}

func registryPruneCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "remove all packages except some from a database or catalog",
		Description: registryHelp + program.Examples("bindery registry prune -d index.db -p etcd",
			"bindery registry prune -d catalog -p etcd --dry-run"),
		Flags: program.Flags([]cli.Flag{
			databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "packages", Aliases: []string{"p"}, Usage: "keep `PACKAGES`"},
			catalogcmd.PermissiveFlag(),
		}, catalogcmd.EditFlags()),
		Action: program.Exactly(0, catalogcmd.ListEdit(func(c *cli.Context, prepare func() (change.Edit, error)) error { return registryEdit(p, c, prepare) }, "packages", func(c *cli.Context, keep []string) (change.Edit, error) { return catalogcmd.PruneEdit(p, c, keep) })),
	}
}

func registryPruneStrandedCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:        "prune-stranded",
		Usage:       "remove bundles without a channel from a database or catalog",
		Description: registryHelp + program.Examples("bindery registry prune-stranded -d index.db"),
		Flags:       program.Flags([]cli.Flag{databaseFlag("bundles.db")}, catalogcmd.EditFlags()),
		Action:      program.Exactly(0, func(c *cli.Context) error { return registryEdit(p, c, catalogcmd.PruneStrandedEdit) }),
	}
}

func registryTruncateCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name: "deprecatetruncate", Hidden: p.Opm,
		Usage: "deprecate bundles and truncate their channels below them",
		Description: registryHelp + " Bundles are given by their image, or as PACKAGE/NAME." +
			program.Examples("bindery registry deprecatetruncate -d index.db -b etcd/etcdoperator.v0.9.2",
				"bindery registry deprecatetruncate -d catalog -b etcd/etcdoperator.v0.9.2 --dry-run --explain"),
		Flags: program.Flags([]cli.Flag{
			databaseFlag("index.db"),
			&cli.StringSliceFlag{Name: "bundle-images", Aliases: []string{"b"}, Usage: "deprecate `BUNDLES`"},
		}, catalogcmd.TruncateFlags(), catalogcmd.EditFlags()),
		Action: program.Exactly(0, func(c *cli.Context) error {
			bundles, err := program.ListFlag(c, "bundle-images")
			if err != nil {
				return err
			}
			return registryEdit(p, c, func() (change.Edit, error) { return catalogcmd.TruncateEdit(p, c, bundles) })
		}),
	}
}

// registryEdit edits --database. Errors about the path are reported before bundles are fetched.
func registryEdit(p *option.Session, c *cli.Context, prepare func() (change.Edit, error)) error {
	path := c.String("database")
	if err := catalogcmd.CheckCatalog(p, c, path); err != nil {
		return err
	}
	e, err := prepare()
	if err != nil {
		return err
	}
	return catalogcmd.EditInPlace(p, c, path, e)
}

// containerToolFlag is accepted for compatibility with opm.
func containerToolFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "container-tool", Aliases: []string{"c"}, Value: value,
		Usage: "ignored: no container `TOOL` is needed (none|docker|podman)"}
}

// checkContainerTool reads [containerToolFlag] and refuses the values that opm refuses.
func checkContainerTool(p *option.Session, c *cli.Context) error {
	tool := c.String("container-tool")
	switch tool {
	case "none", "docker", "podman", "":
	default:
		return cmdline.Usagef("invalid --container-tool value %q, expected (none|docker|podman)", tool)
	}
	named := tool == "docker" || tool == "podman"
	switch {
	case !c.IsSet("ca-file"):
	case c.Bool("skip-tls-verify"), c.IsSet("tls-verify") && !c.Bool("tls-verify"):
		return cmdline.Usagef("--ca-file must not be set with --skip-tls-verify: no certificate is verified then")
	case named:
		return cmdline.Usagef("--ca-file must not be set with --container-tool=%s: the tool has its own certificates",
			tool)
	}
	if named {
		p.Log.Info("--container-tool=" + tool + ": ignored, no container tool is needed")
	}
	return nil
}
