package repository

import (
	"context"
	"fmt"

	"github.com/opencontainers/go-digest"
	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
)

// digestOptions are the flags of "digest".
type digestOptions struct{ option.Images }

// DigestCommand returns "digest".
func DigestCommand(p *option.Session) *cli.Command {
	o := &digestOptions{}
	return &cli.Command{
		Name:      "digest",
		Usage:     "print the digest of an image",
		ArgsUsage: "IMAGE",
		Description: `Prints the digest that a name stands for: that of the index of an image of several platforms,
or with --platform that of the image for one of them. The policy must accept the image.` +
			program.Examples("bindery digest registry.example.com/acme/catalog:v1",
				"bindery digest oci:catalog.oci:v1 --platform linux/arm64"),
		Flags:  program.Flags([]cli.Flag{o.PlatformFlag()}, o.Images.Flags()),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error { return o.run(ctx, p, args[0]) })),
	}
}

func (o *digestOptions) run(ctx context.Context, p *option.Session, name string) (err error) {
	client, err := p.Client(ctx, &o.Images)
	if err != nil {
		return err
	}
	ctx, cancel := o.WithTimeout(ctx)
	defer cancel()
	d, err := digestOf(ctx, client, name, p.Given("platform"))
	if err != nil {
		return err
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	_, err = fmt.Fprintln(p.Stdout, d)
	return err
}

// digestOf returns the digest of an image that the policy accepts, or that of the image for the client's platform.
func digestOf(ctx context.Context, client *images.Client, name string, ofPlatform bool) (digest.Digest, error) {
	if ofPlatform {
		image, err := client.Image(ctx, name, v1.Platform{})
		if err != nil {
			return "", err
		}
		return image.Digest, image.Close()
	}
	of, err := client.Open(ctx, name)
	if err != nil {
		return "", err
	}
	return of.Digest, of.Close()
}
