package main

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/edit/change"
)

// registryCommand returns the group of opm's commands for databases. Here they also work on catalog directories.
func (p *program) registryCommand() *cli.Command {
	return p.groupCommand("registry", "edit and serve index databases and catalog directories, under opm's names",
		p.registryAddCommand(),
		p.registryRemoveCommand(),
		p.registryPruneCommand(),
		p.registryPruneStrandedCommand(),
		p.registryTruncateCommand(),
		p.registryServeCommand(),
		p.registryInitializeCommand(),
		p.registryMirrorCommand(),
	)
}

// databaseFlag names the catalog that the commands of the group edit.
func databaseFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "database", Aliases: []string{"d"}, Value: value,
		Usage: "`PATH` of the database file or the catalog directory"}
}

const registryHelp = "The database file or catalog directory is changed completely or not at all."

func (p *program) registryAddCommand() *cli.Command {
	return &cli.Command{
		Name:  "add",
		Usage: "add bundles to a database or catalog",
		Description: registryHelp + ` A missing database is created.

Bundles are images in registries, layouts and archives, or bundle directories. All problems are reported
together; the exit status is 2 if the database already contains an image, and 3 if it contains another image
of the same bundle.` +
			examples("bindery registry add -d index.db -b registry.example.com/acme/etcd:v0.9.5 --dry-run",
				"bindery registry add -d new.db --mode semver -b "+
					"registry.example.com/acme/etcd:v0.9.4,registry.example.com/acme/etcd:v0.9.5",
				"bindery registry add -d index.db -b new-bundle,registry.example.com/acme/etcd:v0.9.2 --permissive"),
		Flags: flags([]cli.Flag{
			databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "bundle-images", Aliases: []string{"b"},
				Usage: "add the bundles of `REFERENCES`"},
			containerToolFlag("none"),
		}, addFlags(true), editFlags(), []cli.Flag{platformFlag()}, imageFlags()),
		Action: exactly(0, func(c *cli.Context) error {
			if err := p.checkContainerTool(c); err != nil {
				return err
			}
			refs, err := listFlag(c, "bundle-images")
			if err != nil {
				return err
			}
			return p.registryEdit(c, func() (change.Edit, error) { return p.addEdit(c, refs) })
		}),
	}
}

func (p *program) registryRemoveCommand() *cli.Command {
	return &cli.Command{
		Name:  "rm",
		Usage: "remove packages from a database or catalog",
		Description: registryHelp + examples("bindery registry rm -d index.db -o etcd",
			"bindery registry rm -d catalog -o etcd --dry-run"),
		Flags: flags([]cli.Flag{
			databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "packages", Aliases: []string{"o"}, Usage: "remove `PACKAGES`"},
			permissiveFlag(),
		}, editFlags()),
		Action: exactly(0, listEdit(p.registryEdit, "packages", p.removeEdit)),
	}
}

func (p *program) registryPruneCommand() *cli.Command {
	return &cli.Command{
		Name:  "prune",
		Usage: "remove all packages except some from a database or catalog",
		Description: registryHelp + examples("bindery registry prune -d index.db -p etcd",
			"bindery registry prune -d catalog -p etcd --dry-run"),
		Flags: flags([]cli.Flag{
			databaseFlag("bundles.db"),
			&cli.StringSliceFlag{Name: "packages", Aliases: []string{"p"}, Usage: "keep `PACKAGES`"},
			permissiveFlag(),
		}, editFlags()),
		Action: exactly(0, listEdit(p.registryEdit, "packages", p.pruneEdit)),
	}
}

func (p *program) registryPruneStrandedCommand() *cli.Command {
	return &cli.Command{
		Name:        "prune-stranded",
		Usage:       "remove bundles without a channel from a database or catalog",
		Description: registryHelp + examples("bindery registry prune-stranded -d index.db"),
		Flags:       flags([]cli.Flag{databaseFlag("bundles.db")}, editFlags()),
		Action:      exactly(0, func(c *cli.Context) error { return p.registryEdit(c, pruneStrandedEdit) }),
	}
}

func (p *program) registryTruncateCommand() *cli.Command {
	return &cli.Command{
		Name: "deprecatetruncate", Hidden: p.opm,
		Usage: "deprecate bundles and truncate their channels below them",
		Description: registryHelp + " Bundles are given by their image, or as PACKAGE/NAME." +
			examples("bindery registry deprecatetruncate -d index.db -b etcd/etcdoperator.v0.9.2",
				"bindery registry deprecatetruncate -d catalog -b etcd/etcdoperator.v0.9.2 --dry-run --explain"),
		Flags: flags([]cli.Flag{
			databaseFlag("index.db"),
			&cli.StringSliceFlag{Name: "bundle-images", Aliases: []string{"b"}, Usage: "deprecate `BUNDLES`"},
		}, truncateFlags(), editFlags()),
		Action: exactly(0, func(c *cli.Context) error {
			bundles, err := listFlag(c, "bundle-images")
			if err != nil {
				return err
			}
			return p.registryEdit(c, func() (change.Edit, error) { return p.truncateEdit(c, bundles) })
		}),
	}
}

// registryEdit edits --database. Errors about the path are reported before bundles are fetched.
func (p *program) registryEdit(c *cli.Context, prepare func() (change.Edit, error)) error {
	path := c.String("database")
	if err := p.checkCatalog(c, path); err != nil {
		return err
	}
	e, err := prepare()
	if err != nil {
		return err
	}
	return p.editInPlace(c, path, e)
}

// flags joins lists of flags.
func flags(lists ...[]cli.Flag) []cli.Flag {
	var all []cli.Flag
	for _, list := range lists {
		all = append(all, list...)
	}
	return all
}

// containerToolFlag is accepted for compatibility with opm.
func containerToolFlag(value string) cli.Flag {
	return &cli.StringFlag{Name: "container-tool", Aliases: []string{"c"}, Value: value,
		Usage: "ignored: no container `TOOL` is needed (none|docker|podman)"}
}

// checkContainerTool reads [containerToolFlag] and refuses the values that opm refuses.
func (p *program) checkContainerTool(c *cli.Context) error {
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
		p.log.Info("--container-tool=" + tool + ": ignored, no container tool is needed")
	}
	return nil
}
