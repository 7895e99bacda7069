package main

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/mirror"
)

func (p *program) mirrorPublishCommand() *cli.Command {
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
			examples("bindery mirror publish -c imageset.yaml --workspace mirror docker://registry.example.com/olm",
				"bindery mirror publish -c imageset.yaml --from media docker://registry.example.com/olm -o json",
				"bindery mirror publish -c imageset.yaml --from parts file://parts/catalogs"),
		Flags: flags(imageSetFlags(), mirrorRunFlags(), mirrorCopyFlags(), mirrorMediumFlags(), filterPolicyFlags(),
			mirrorCatalogFlags(), answerFlags(), signFlags(), imageFlags()),
		Action: exactly(1, p.mirrorPublish),
	}
}

func (p *program) mirrorPublish(c *cli.Context) error {
	asJSON, err := checkAnswer(c)
	if err != nil {
		return err
	}
	a, err := readMirrorArgs(c)
	if err != nil {
		return err
	}
	return p.withMirror(c, a, func(o mirror.Options) error {
		if o.PublishOnly = true; !c.IsSet("on-missing") {
			o.OnMissing = ""
		}
		if err := p.mediumOptions(c, &o); err != nil {
			return err
		}
		if err := checkDivided(c, o); err != nil {
			return err
		}
		account, err := p.runMirror(c.Context, o)
		return p.reportMirror(c, o, account, asJSON, err)
	})
}

func (p *program) mirrorResourcesCommand() *cli.Command {
	return &cli.Command{
		Name:      "resources",
		Usage:     "write the files that tell clusters to use the mirror",
		ArgsUsage: "DESTINATION",
		Description: `Writes the ImageDigestMirrorSet, ImageTagMirrorSet, CatalogSource and ClusterCatalog
objects of an image set for docker://REGISTRY[/PATH], a mapping of all images and a registries.conf to --to.
"mirror run" writes those of what it has copied; this command writes those of all that is requested.` +
			examples(
				"bindery mirror resources -c imageset.yaml --workspace mirror --to resources "+
					"docker://registry.example.com/olm"),
		Flags: flags(imageSetFlags(), mirrorRunFlags(), []cli.Flag{
			&cli.StringFlag{Name: "to", Usage: "`DIR` to write to (default WORKSPACE/working-dir/cluster-resources)"},
		}, mirrorCopyFlags(), filterPolicyFlags(), mirrorCatalogFlags(), answerFlags(), imageFlags()),
		Action: exactly(1, p.mirrorResources),
	}
}

func (p *program) mirrorResources(c *cli.Context) error {
	asJSON, err := checkAnswer(c)
	if err != nil {
		return err
	}
	a, err := readMirrorArgs(c)
	if err != nil {
		return err
	}
	if a.mode == mirror.ToDisk {
		return cmdline.Usagef("the files are about a registry: the destination is %s", c.Args().First())
	}
	return p.withMirror(c, a, func(o mirror.Options) error {
		dir := c.String("to")
		if dir == "" {
			if dir, err = o.Workspace.Resources(); err != nil {
				return err
			}
		}
		write := dir
		if o.DryRun {
			scratch, err := os.MkdirTemp("", "bindery-resources-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(scratch)
			write = scratch
		}
		account, err := mirror.Resources(c.Context, o, write)
		if err != nil {
			return err
		}
		for i, file := range account.Resources {
			account.Resources[i] = filepath.Join(dir, filepath.Base(file))
		}
		if o.DryRun {
			p.log.Info("nothing is written in a dry run")
		}
		if asJSON {
			return p.printJSON(account)
		}
		_, err = p.stdout.Write([]byte(printable.Text(strings.Join(append(account.Resources, ""), "\n"))))
		return err
	})
}
