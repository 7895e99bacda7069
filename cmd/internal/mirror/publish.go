package mirror

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
	"github.com/operator-bindery/bindery/mirror/medium"
)

func mirrorPublishCommand(p *option.Session) *cli.Command {
	o := &runOptions{}
	return &cli.Command{
		Name:      "publish",
		Usage:     "publish the catalogs of an image set whose images are at the registry, or in archives",
		ArgsUsage: "DESTINATION",
		Description: `Copies no images: it looks for those that the image set asks for at
docker://REGISTRY[/PATH], and publishes the catalogs as "mirror run" does at its end. It comes after the runs
of all shards (mirror run --shard I/N), and is given the same image set and flags. file://DIR --from PARTS
writes the catalogs to an archive in DIR, when all that they name is in the archives that the runs of all
shards left in the directories of PARTS. It is an error if one of them is missing.

A catalog with images that the registry lacks and their sources have is not published: a run has not ended, or
has failed. With --on-missing skip-bundle the bundles are left out in this case, too.` +
			program.Examples("bindery mirror publish -c imageset.yaml --workspace mirror docker://registry.example.com/olm",
				"bindery mirror publish -c imageset.yaml --from media docker://registry.example.com/olm -o json",
				"bindery mirror publish -c imageset.yaml --from parts file://parts/catalogs"),
		Flags: program.Flags(o.flags(), o.fileFlags(), o.copyFlags(), o.ReleaseFlags(), o.ChartFlags(), o.mediumFlags(), o.filterFlags(),
			o.catalogFlags(), o.Answer.Flags(), o.Signing.Flags(), o.EndsFlags(), o.Images.Flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			if err := p.Filled("on-missing"); err != nil {
				return err
			}
			if o.Request.PublishOnly = true; !p.Given("on-missing") {
				o.Request.OnMissing = ""
			}
			return o.run(ctx, p, args[0])
		})),
	}
}

func mirrorResourcesCommand(p *option.Session) *cli.Command {
	o := &runOptions{}
	var to string
	return &cli.Command{
		Name:      "resources",
		Usage:     "write the files that tell clusters to use the mirror",
		ArgsUsage: "DESTINATION",
		Description: `Writes the ImageDigestMirrorSet, ImageTagMirrorSet, CatalogSource and ClusterCatalog
objects of an image set for docker://REGISTRY[/PATH], a mapping of all images and a registries.conf to --to.
"mirror run" writes those of what it has copied; this command writes those of all that is requested.` +
			program.Examples(
				"bindery mirror resources -c imageset.yaml --workspace mirror --to resources "+
					"docker://registry.example.com/olm"),
		Flags: program.Flags(o.flags(), o.fileFlags(), []cli.Flag{
			&cli.StringFlag{Name: "to", Destination: &to, Usage: "`DIR` to write to (default WORKSPACE/working-dir/cluster-resources)"},
		}, o.copyFlags(), o.ReleaseFlags(), o.ChartFlags(), o.filterFlags(), o.catalogFlags(), o.Answer.Flags(), o.Images.Flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return o.writeResources(ctx, p, args[0], to)
		})),
	}
}

// writeResources writes the files for clusters to a directory, or else to that of the workspace.
func (o *runOptions) writeResources(ctx context.Context, p *option.Session, dest, dir string) error {
	if strings.HasPrefix(dest, FileScheme) {
		return cmdline.Usagef("the files are about a registry: the destination is %s", dest)
	}
	o.Request.Medium.Form = medium.OCI // the command has no flags of archives
	return o.prepare(ctx, p, dest, func(with mirror.Options, format program.Format) (err error) {
		if dir == "" {
			if dir, err = with.Workspace.Resources(); err != nil {
				return err
			}
		}
		write := dir
		if with.DryRun {
			scratch, err := os.MkdirTemp("", "bindery-resources-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(scratch)
			write = scratch
		}
		account, err := with.WriteResources(ctx, write)
		if err != nil {
			return err
		}
		for i, file := range account.Resources {
			account.Resources[i] = filepath.Join(dir, filepath.Base(file))
		}
		if with.DryRun {
			p.Log.Info("nothing is written in a dry run")
		}
		if format.IsDocument() {
			return p.PrintValue(format, account)
		}
		_, err = p.Stdout.Write([]byte(printable.Text(strings.Join(append(account.Resources, ""), "\n"))))
		return err
	})
}
