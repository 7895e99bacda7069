package option

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/supply/publish"
)

// Destination is where an image goes, and who signs it.
type Destination struct {
	Tags, To   cli.StringSlice
	Push, Load bool
	IfDigest   string
	Signing
}

// Flags are the flags of every command that writes images.
func (o *Destination) Flags() []cli.Flag {
	const group = "destination"
	return append([]cli.Flag{
		&cli.StringSliceFlag{Name: "tag", Aliases: []string{"t"},
			Usage: "image `NAME` in the form REGISTRY/REPOSITORY:TAG", Category: group, Destination: &o.Tags},
		&cli.BoolFlag{Name: "push", Usage: "push the image to the registry of each name", Category: group,
			Destination: &o.Push},
		&cli.BoolFlag{Name: "load",
			Usage:    "write the image to the storage of podman, buildah and CRI-O under each name",
			Category: group, Destination: &o.Load},
		&cli.StringFlag{Name: "if-digest",
			Usage:    "push only if the tag currently resolves to `DIGEST`, or with \"none\" only if it does not exist",
			Category: group, Destination: &o.IfDigest},
		&cli.StringSliceFlag{Name: "to", Aliases: []string{"output"},
			Usage: "write the image to `TRANSPORT:PATH`: " + program.OutputTransports(), Category: group, Destination: &o.To},
	}, o.Signing.Flags()...)
}

// Options reads the flags.
func (o *Destination) Options() (to publish.Destination, err error) {
	to.Push, to.Load, to.IfDigest = o.Push, o.Load, o.IfDigest
	if to.Tags, err = cmdline.List(o.Tags.Value()); err == nil {
		to.To, err = cmdline.List(o.To.Value())
	}
	return to, err
}
