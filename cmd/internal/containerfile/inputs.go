package containerfile

import "github.com/urfave/cli/v2"

// Inputs are the inputs of a Containerfile build.
type Inputs struct {
	Args, Contexts, Secrets cli.StringSlice
	Target                  string
}

// Flags are the flags of every command that builds Containerfiles.
func (o *Inputs) Flags() []cli.Flag {
	const group = "content"
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "build-arg", Category: group, Destination: &o.Args,
			Usage: "set the ARG `NAME=VALUE`; NAME alone takes its value from the environment"},
		&cli.StringSliceFlag{Name: "build-context", Usage: "additional build context `NAME=DIR`, for --from=NAME",
			Category: group, Destination: &o.Contexts},
		&cli.StringFlag{Name: "target", Usage: "build `STAGE` (default the last)", Category: group, Destination: &o.Target},
		&cli.StringSliceFlag{Name: "secret", Category: group, Destination: &o.Secrets,
			Usage: "expose the secret `id=ID,src=FILE` to RUN --mount=type=secret only"},
	}
}
