package read

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/scaffold"
)

func GenerateCommand(p *option.Session) *cli.Command {
	return p.GroupCommand("generate", "generate files for a catalog", dockerfileCommand(p))
}

// dockerfileOptions are the flags of "generate dockerfile".
type dockerfileOptions struct {
	base, builder, both string
	labels              cli.StringSlice
}

func dockerfileCommand(p *option.Session) *cli.Command {
	o := &dockerfileOptions{}
	return &cli.Command{
		Name:      "dockerfile",
		Usage:     "generate a Dockerfile for a catalog directory",
		ArgsUsage: "DIR",
		Description: `The file is written beside the directory as DIR.Dockerfile; an existing file is not
replaced. "build containerfile" builds its image; "build catalog" builds one without a Dockerfile.` +
			program.Examples("bindery generate dockerfile catalog",
				"bindery generate dockerfile catalog --base-image scratch --extra-labels vendor=example,tier=1"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "base-image", Aliases: []string{"i"}, Value: scaffold.DefaultImage, Destination: &o.base,
				Usage: "base `IMAGE` with the server, or scratch for a catalog of files only"},
			&cli.StringFlag{Name: "builder-image", Aliases: []string{"b"}, Value: scaffold.DefaultImage,
				Destination: &o.builder,
				Usage:       "`IMAGE` of the build stage"},
			&cli.StringFlag{Name: "binary-image", Usage: "`IMAGE` of both stages", Hidden: true, Destination: &o.both},
			&cli.StringSliceFlag{Name: "extra-labels", Aliases: []string{"l"}, Destination: &o.labels,
				Usage: "additional image labels `KEY=VALUE`"},
		},
		Action: program.Exactly(1, p.Action(func(_ context.Context, args []string) error { return writeDockerfile(p, o, args[0]) })),
	}
}

func writeDockerfile(p *option.Session, o *dockerfileOptions, dir string) error {
	d := scaffold.Dockerfile{BaseImage: o.base, BuilderImage: o.builder}
	if both := o.both; both != "" {
		if p.Given("base-image") || p.Given("builder-image") {
			return cmdline.Usagef(
				"--binary-image stands for --base-image and --builder-image: it cannot be set with one of them")
		}
		d.BaseImage, d.BuilderImage = both, both
	}
	list, err := cmdline.List(o.labels.Value())
	if err != nil {
		return err
	}
	if d.Labels, err = scaffold.ParseLabels(list); err != nil {
		return &cmdline.Error{Class: cmdline.ClassUsage, Err: err, Hint: "labels have the form key=value"}
	}
	path, err := d.Write(dir)
	if err != nil {
		return err
	}
	if !p.Opm {
		p.Log.Info("wrote " + path)
	}
	return nil
}
