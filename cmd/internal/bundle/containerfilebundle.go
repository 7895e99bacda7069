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

// bundleContainerfileFlags are the Containerfile flags of "build bundle".
func bundleContainerfileFlags() []cli.Flag {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "containerfile",
			Usage: "build what `FILE` says, such as the bundle.Dockerfile that opm or operator-sdk wrote, with the " +
				"argument as its context", Category: "content"},
	}
	return append(flags, new(containerfilecmd.Inputs).Flags()...)
}

// buildBundleContainerfile builds the image of a Containerfile and checks that it is a bundle.
func buildBundleContainerfile(p *option.Session, c *cli.Context) error {
	for _, flag := range []string{"package", "channels", "default", "overwrite", "output-dir"} {
		if c.IsSet(flag) {
			return cmdline.Usagef("--%s cannot be combined with --containerfile, which defines the image", flag)
		}
	}
	if c.IsSet("base") {
		return cmdline.Usagef("--base cannot be combined with --containerfile: its FROM names the base")
	}
	dir, err := argumentOr(c, "directory")
	if err != nil {
		return err
	}
	in := &containerfilecmd.Inputs{Args: list(c, "build-arg"), Contexts: list(c, "build-context"), Secrets: list(c, "secret"),
		Target: c.String("target")}
	limits, err := option.ImageLimits(p, c)
	if err != nil {
		return err
	}
	b, err := containerfilecmd.Read(c.Context, p, in, limits, c.String("containerfile"), dir)
	if err != nil {
		return err
	}
	o, err := p.BuildOptions(c)
	if err != nil {
		return err
	}
	platform, err := option.ParsePlatform(c.String("platform"))
	if err != nil {
		return err
	}
	return containerfilecmd.MakeImage(c.Context, p, option.ImageFrom(p, c), b, o, []v1.Platform{platform},
		func(ctx context.Context, labels map[string]string, files fs.FS) error {
			if c.Bool("skip-validation") {
				return nil
			}
			v := validation{plain: c.Bool("plain"), strict: !p.Opm, labels: labels}
			if err := validBundle(p, ctx, b.File.Name, files, v); err != nil {
				return fmt.Errorf("the image is not a valid bundle: %w", err)
			}
			return nil
		})
}

func list(c *cli.Context, flag string) cli.StringSlice {
	return *cli.NewStringSlice(c.StringSlice(flag)...)
}
