package main

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg/scaffold"
)

func (p *program) generateCommand() *cli.Command {
	return p.groupCommand("generate", "generate files for a catalog", p.dockerfileCommand())
}

func (p *program) dockerfileCommand() *cli.Command {
	return &cli.Command{
		Name:      "dockerfile",
		Usage:     "generate a Dockerfile for a catalog directory",
		ArgsUsage: "DIR",
		Description: `The file is written beside the directory as DIR.Dockerfile; an existing file is not
replaced. "build containerfile" builds its image; "build catalog" builds one without a Dockerfile.` +
			examples("bindery generate dockerfile catalog",
				"bindery generate dockerfile catalog --base-image scratch --extra-labels vendor=example,tier=1"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base-image", Aliases: []string{"i"}, Value: scaffold.DefaultImage,
				Usage: "base `IMAGE` with the server, or scratch for a catalog of files only"},
			&cli.StringFlag{Name: "builder-image", Aliases: []string{"b"}, Value: scaffold.DefaultImage,
				Usage: "`IMAGE` of the build stage"},
			&cli.StringFlag{Name: "binary-image", Usage: "`IMAGE` of both stages", Hidden: true},
			&cli.StringSliceFlag{Name: "extra-labels", Aliases: []string{"l"},
				Usage: "additional image labels `KEY=VALUE`"},
		},
		Action: exactly(1, p.dockerfile),
	}
}

func (p *program) dockerfile(c *cli.Context) error {
	d := scaffold.Dockerfile{BaseImage: c.String("base-image"), BuilderImage: c.String("builder-image")}
	if both := c.String("binary-image"); both != "" {
		if c.IsSet("base-image") || c.IsSet("builder-image") {
			return cmdline.Usagef(
				"--binary-image stands for --base-image and --builder-image: it cannot be set with one of them")
		}
		d.BaseImage, d.BuilderImage = both, both
	}
	list, err := cmdline.List(c.StringSlice("extra-labels"))
	if err != nil {
		return err
	}
	if d.Labels, err = scaffold.ParseLabels(list); err != nil {
		return &cmdline.Error{Class: cmdline.ClassUsage, Err: err, Hint: "labels have the form key=value"}
	}
	path, err := d.Write(c.Args().First())
	if err != nil {
		return err
	}
	if !p.opm {
		p.log.Info("wrote " + path)
	}
	return nil
}
