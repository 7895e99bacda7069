package main

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/mirror/resources"
)

// mirrorSource is the client that reads the images of a run: as [program.client], without a cache.
func (p *program) mirrorSource(c *cli.Context, from images.Registry,
	throttle *images.Throttle) (*images.Client, error) {
	o, err := p.clientOptions(c)
	if err != nil {
		return nil, err
	}
	o.Registry, o.Throttle, o.Cache, o.AnyPlatform = from, throttle, nil, true
	return images.NewClient(o)
}

// readResourceFlags reads the flags about files for clusters.
func readResourceFlags(c *cli.Context, o *resources.Options) error {
	switch v := c.String("idms-scope"); v {
	case "namespace", "repository":
		o.Repositories = v == "repository"
	default:
		return cmdline.Usagef("invalid --idms-scope value %q, expected (namespace|repository)", v)
	}
	o.PinCatalogs, o.Policy, o.Version = c.Bool("pin-catalogs"), c.Bool("icsp"), version.Release
	o.Lists, o.Insecure = true, c.Bool("use-http")
	return nil
}
