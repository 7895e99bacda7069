//go:build !nobuildah

package bundle

import (
	"context"
	"fmt"
	"io/fs"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	containerfilecmd "github.com/operator-bindery/bindery/cmd/internal/containerfile"
	"github.com/operator-bindery/bindery/cmd/internal/option"
)

// containerfileFlags are the Containerfile flags of "build bundle".
func (o *buildOptions) containerfileFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "containerfile", Destination: &o.containerfile,
			Usage: "build what `FILE` says, such as the bundle.Dockerfile that opm or operator-sdk wrote, with the " +
				"argument as its context", Category: "content"},
	}
	return append(flags, o.Inputs.Flags()...)
}

// buildBundleContainerfile builds the image of a Containerfile and checks that it is a bundle.
func buildBundleContainerfile(ctx context.Context, p *option.Session, o *buildOptions, args []string) error {
	for _, flag := range []string{"package", "channels", "default", "overwrite", "output-dir"} {
		if p.Given(flag) {
			return cmdline.Usagef("--%s cannot be combined with --containerfile, which defines the image", flag)
		}
	}
	if p.Given("base") {
		return cmdline.Usagef("--base cannot be combined with --containerfile: its FROM names the base")
	}
	dir, err := argumentOr(args, "directory", o.dir)
	if err != nil {
		return err
	}
	limits, err := o.Limits()
	if err != nil {
		return err
	}
	b, err := containerfilecmd.Read(ctx, p, &o.Inputs, limits, o.containerfile, dir)
	if err != nil {
		return err
	}
	with, err := o.BuildOptions(ctx, p)
	if err != nil {
		return err
	}
	platform, err := option.ParsePlatform(o.Platform)
	if err != nil {
		return err
	}
	return containerfilecmd.MakeImage(ctx, p, &o.Image, b, with, []v1.Platform{platform},
		func(ctx context.Context, labels map[string]string, files fs.FS) error {
			if o.skipValidation {
				return nil
			}
			v := validation{plain: o.plain, strict: !p.Opm, labels: labels}
			if err := validBundle(p, ctx, b.File.Name, files, v); err != nil {
				return fmt.Errorf("the image is not a valid bundle: %w", err)
			}
			return nil
		})
}
