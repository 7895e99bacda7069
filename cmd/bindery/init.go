package main

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/declcfg/scaffold"
)

func (p *program) initCommand() *cli.Command {
	return &cli.Command{
		Name:      "init",
		Usage:     "print the olm.package blob of a new package",
		ArgsUsage: "PACKAGE",
		Description: "The blob starts a catalog; channels and bundles follow it." +
			examples("bindery init example-operator --default-channel stable",
				"bindery init example-operator -c stable -d README.md -i icon.svg -o yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "default-channel", Aliases: []string{"c"},
				Usage: "default `CHANNEL` of subscriptions"},
			&cli.StringFlag{Name: "description", Aliases: []string{"d"},
				Usage: "`FILE` with the description, usually Markdown"},
			&cli.StringFlag{Name: "icon", Aliases: []string{"i"},
				Usage: "`FILE` with the icon: PNG, JPEG, GIF, WebP, SVG, ..."},
			catalogFormatFlag(),
		},
		Action: exactly(1, func(c *cli.Context) error {
			format, err := catalogFormat(c)
			if err != nil {
				return err
			}
			pkg, err := scaffold.PackageOptions{
				DefaultChannel: c.String("default-channel"), DescriptionFile: c.String("description"),
				IconFile: c.String("icon"),
			}.NewPackage(c.Context, c.Args().First())
			if err != nil {
				return err
			}
			return format.NewEncoder(p.stdout).Encode(pkg)
		}),
	}
}
