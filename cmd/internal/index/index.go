package index

import (
	"context"

	"github.com/urfave/cli/v2"

	catalogcmd "github.com/operator-bindery/bindery/cmd/internal/catalog"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/edit/change"
)

// Command returns the group of opm's former commands for index images.
func Command(p *option.Session) *cli.Command {
	return p.GroupCommand("index", "edit index images, under opm's names",
		indexAddCommand(p),
		indexRemoveCommand(p),
		indexPruneCommand(p),
		indexPruneStrandedCommand(p),
		indexTruncateCommand(p),
		indexExportCommand(p),
	)
}

const indexHelp = "The index is a database image or a catalog image, in a registry, layout or archive. The new image " +
	"keeps its format unless\n" +
	"--output-format is set, and has new layers only: they contain nothing that was removed. It is written to the " +
	"destinations\n" +
	"of --push and --to, else to an OCI layout in the working directory. No container tool is needed. --dry-run " +
	"shows the\n" +
	"changes, --explain their reasons."

func indexAddCommand(p *option.Session) *cli.Command {
	o := &indexOptions{}
	var bundles cli.StringSlice
	return &cli.Command{
		Name:  "add",
		Usage: "add bundles to a new or existing index image",
		Description: indexHelp + `

Without --from-index a new index is created, by default a file-based catalog (see --output-format); with
--bundles "" and --allow-empty it is empty. Bundles are images in registries, layouts and archives, or bundle
directories. All problems are reported together; the exit status is 2 if the index already contains an image,
and 3 if it contains another image of the same bundle.` +
			program.Examples("bindery index add --mode semver -b registry.example.com/acme/etcd:v0.9.4 -t "+
				"registry.example.com/acme/index:v1",
				"bindery index add -b registry.example.com/acme/etcd:v0.9.5 -f oci:catalog.oci:v1 -t "+
					"registry.example.com/acme/catalog:v2 --platform linux/amd64",
				"bindery index add -b new-bundle -f oci:catalog.oci:v1 -t example.com/acme/catalog:v2 --image-ref-template "+
					"registry.example.com/acme/{{.Package}}:v{{.Version}} --dry-run --explain",
				"bindery index add --mode semver -b registry.example.com/acme/etcd:v0.9.4 --generate "+
					"--output-format sqlite"),
		Flags: o.flags(true, []cli.Flag{
			&cli.StringSliceFlag{Name: "bundles", Destination: &bundles, Aliases: []string{"b"}, Usage: "add the bundles of `REFERENCES`"},
		}, o.AddFlags(true)),
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error {
			if !p.Given("bundles") {
				return cmdline.Usagef("required flag(s) %q not set", "bundles")
			}
			refs, err := program.Values(bundles.Value())
			if err != nil {
				return err
			}
			if len(refs) == 0 {
				return o.run(ctx, p, true, catalogcmd.Ready(nothingToEdit()))
			}
			return o.run(ctx, p, true, func(ctx context.Context) (change.Edit, error) { return o.Add(ctx, p, refs) })
		})),
	}
}

func indexRemoveCommand(p *option.Session) *cli.Command {
	o := &indexOptions{}
	var packages cli.StringSlice
	return &cli.Command{
		Name:  "rm",
		Usage: "remove packages from an index image",
		Description: indexHelp +
			program.Examples("bindery index rm -o etcd -f oci:catalog.oci:v1 -t example.com/acme/catalog:v2",
				"bindery index rm -o etcd -f registry.example.com/acme/catalog:v1 --generate"),
		Flags: o.flags(true, []cli.Flag{
			&cli.StringSliceFlag{Name: "operators", Destination: &packages, Aliases: []string{"o"}, Usage: "remove `PACKAGES`"},
			o.PermissiveFlag(),
		}),
		Action: program.Exactly(0, catalogcmd.WithList(p, "operators", &packages, func(ctx context.Context, _, packages []string) error {
			return o.run(ctx, p, false, catalogcmd.Ready(o.Remove(packages)))
		})),
	}
}

func indexPruneCommand(p *option.Session) *cli.Command {
	o := &indexOptions{}
	var keep cli.StringSlice
	return &cli.Command{
		Name:  "prune",
		Usage: "remove all packages except some from an index image",
		Description: indexHelp +
			program.Examples("bindery index prune -p etcd -f oci:catalog.oci:v1 -t example.com/acme/catalog:v2",
				"bindery index prune -p etcd -f index.db -t example.com/acme/index:v2 --output-format fbc --to "+
					"oci-archive:index.tar"),
		Flags: o.flags(false, []cli.Flag{
			&cli.StringSliceFlag{Name: "packages", Destination: &keep, Aliases: []string{"p"}, Usage: "keep `PACKAGES`"},
			o.PermissiveFlag(),
		}),
		Action: program.Exactly(0, catalogcmd.WithList(p, "packages", &keep, func(ctx context.Context, _, keep []string) error {
			return o.run(ctx, p, false, catalogcmd.Ready(o.Prune(p, keep)))
		})),
	}
}

func indexPruneStrandedCommand(p *option.Session) *cli.Command {
	o := &indexOptions{}
	return &cli.Command{
		Name:        "prune-stranded",
		Usage:       "remove bundles without a channel from an index image",
		Description: indexHelp + program.Examples("bindery index prune-stranded -f index.db -t example.com/acme/index:v2"),
		Flags:       o.flags(true, []cli.Flag{o.PermissiveFlag()}),
		Action: program.Exactly(0, p.Action(func(ctx context.Context, _ []string) error {
			return o.run(ctx, p, false, catalogcmd.Ready(change.PruneStranded()))
		})),
	}
}

func indexTruncateCommand(p *option.Session) *cli.Command {
	o := &indexOptions{}
	var bundles cli.StringSlice
	return &cli.Command{
		Name: "deprecatetruncate", Hidden: p.Opm,
		Usage: "deprecate bundles of an index image and truncate their channels below them",
		Description: indexHelp + " Bundles are given by their image, or as PACKAGE/NAME." +
			program.Examples(
				"bindery index deprecatetruncate -b etcd/etcdoperator.v0.9.2 -f oci:catalog.oci:v1 -t "+
					"example.com/acme/catalog:v2 --explain"),
		Flags: o.flags(true, []cli.Flag{
			&cli.StringSliceFlag{Name: "bundles", Destination: &bundles, Aliases: []string{"b"}, Usage: "deprecate `BUNDLES`"},
		}, o.TruncateFlags()),
		Action: program.Exactly(0, catalogcmd.WithList(p, "bundles", &bundles, func(ctx context.Context, _, bundles []string) error {
			return o.run(ctx, p, false, catalogcmd.Ready(o.Truncate(p, bundles)))
		})),
	}
}

// nothingToEdit returns an edit that adds no bundles.
func nothingToEdit() change.Edit {
	return change.Edit{Whole: catalogcmd.None(),
		Apply: func(_ context.Context, s *change.State) (*declcfg.Catalog, *edit.Account, error) {
			return s.Catalog, &edit.Account{}, nil
		}}
}

// run edits --from-index, or a new index if the command makes one, and writes an image, or with --generate the files to
// build one.
func (o *indexOptions) run(ctx context.Context, p *option.Session, begins bool, prepare catalogcmd.Prepare) error {
	if err := o.checkTools(p); err != nil {
		return err
	}
	i := catalogcmd.ImageEdit{From: o.from, Edit: prepare}
	if i.From == "" && !begins {
		return cmdline.Usagef("required flag(s) %q not set", "from-index")
	}
	if o.generate {
		return o.writeFiles(ctx, p, i)
	}
	if !p.Given("tag") {
		if o.Push || o.Load {
			e := cmdline.Usagef("required flag(s) \"tag\" not set")
			e.Hint = "name the image with -t NAME"
			return e
		}
		if !p.Given("to") {
			o.Tags = *cli.NewStringSlice(defaultIndexTag)
		}
	}
	return o.MakeImage(ctx, p, i)
}
