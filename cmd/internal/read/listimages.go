package read

import (
	"bytes"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/list"
)

func listImagesCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:      "images",
		Usage:     "list the images that a catalog references",
		ArgsUsage: "REF [PACKAGE]",
		Description: option.CatalogHelp + validHelp + packageHelp + `

Lists the images of the bundles and their related images, which a mirror needs: one per line, sorted, without
duplicates.` +
			program.Examples("bindery list images catalog",
				"bindery list images registry.example.com/acme/catalog:v1 etcd --heads-only",
				"bindery list images index.db etcd --channel alpha --by bundle",
				"bindery list images catalog --heads-only -o json"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"},
				Usage: "output `FORMAT` (json|yaml): each image with its references"},
			&cli.StringFlag{Name: "by", Usage: "print a table of images per `GROUP` (package|channel|bundle)"},
			&cli.StringSliceFlag{Name: "channel", Usage: "only bundles of `CHANNEL`; can be repeated"},
			&cli.BoolFlag{Name: "heads-only", Usage: "only bundles that are channel heads"},
			program.CompatFlag(),
		}, option.ReadFlags()...),
		Action: program.Between(1, 2, func(c *cli.Context) error { return listImages(p, c) }),
	}
}

func listImages(p *option.Session, c *cli.Context) error {
	format, err := program.ListFormat(c, "json", "yaml")
	if err != nil {
		return err
	}
	by := c.String("by")
	switch by {
	case "", list.ByPackage, list.ByChannel, list.ByBundle:
	default:
		return cmdline.Usagef("invalid --by value %q, expected (package|channel|bundle)", by)
	}
	listing, err := listing(p, c, nil)
	if err != nil {
		return err
	}
	rows, err := listing.Images(list.ImageOptions{Package: c.Args().Get(1), Channels: c.StringSlice("channel"),
		HeadsOnly: c.Bool("heads-only")})
	if err != nil {
		return err
	}
	if by != "" {
		groups, err := list.GroupImages(rows, by)
		if err != nil {
			return err
		}
		if format != "" {
			return p.PrintValue(format, groups)
		}
		t := list.ImageTable(groups, by)
		return p.PrintTable(t.Header, t.Rows...)
	}
	if format != "" {
		return p.PrintValue(format, rows)
	}
	// Valid image references contain no characters that are special to scripts or terminals.
	var b bytes.Buffer
	for _, r := range rows {
		b.WriteString(r.Image + "\n")
	}
	_, err = p.Stdout.Write(b.Bytes())
	return err
}
