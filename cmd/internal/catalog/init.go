package catalog

import (
	"context"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/scaffold"
)

// InitCommand returns "init".
func InitCommand(p *option.Session) *cli.Command {
	var with scaffold.PackageOptions
	var output string
	return &cli.Command{
		Name:      "init",
		Usage:     "print the olm.package blob of a new package",
		ArgsUsage: "PACKAGE",
		Description: "The blob starts a catalog; channels and bundles follow it." +
			program.Examples("bindery init example-operator --default-channel stable",
				"bindery init example-operator -c stable -d README.md -i icon.svg -o yaml"),
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "default-channel", Aliases: []string{"c"}, Destination: &with.DefaultChannel,
				Usage: "default `CHANNEL` of subscriptions"},
			&cli.StringFlag{Name: "description", Aliases: []string{"d"}, Destination: &with.DescriptionFile,
				Usage: "`FILE` with the description, usually Markdown"},
			&cli.StringFlag{Name: "icon", Aliases: []string{"i"}, Destination: &with.IconFile,
				Usage: "`FILE` with the icon: PNG, JPEG, GIF, WebP, SVG, ..."},
			program.CatalogFormatFlag(&output),
		},
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			format, err := program.ParseCatalogFormat(output)
			if err != nil {
				return err
			}
			pkg, err := with.NewPackage(ctx, args[0])
			if err != nil {
				return err
			}
			return format.NewEncoder(p.Stdout).Encode(pkg)
		})),
	}
}
