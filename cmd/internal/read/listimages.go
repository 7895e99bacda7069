package read

import (
	"bytes"
	"context"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/list"
)

func listImagesCommand(p *option.Session) *cli.Command {
	o := &listOptions{}
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
			program.AnswerFlag(&o.output),
			&cli.StringFlag{Name: "by", Destination: &o.by, Usage: "print a table of images per `GROUP` (package|channel|bundle)"},
			&cli.StringSliceFlag{Name: "channel", Usage: "only bundles of `CHANNEL`; can be repeated",
				Destination: &o.channels},
			&cli.BoolFlag{Name: "heads-only", Usage: "only bundles that are channel heads", Destination: &o.headsOnly},
			o.CompatFlag(""),
		}, o.Reading.Flags()...),
		Action: program.Between(1, 2, p.Action(func(ctx context.Context, args []string) error {
			return listImages(ctx, p, o, args)
		})),
	}
}

func listImages(ctx context.Context, p *option.Session, o *listOptions, args []string) error {
	format, err := program.AnswerFormat(o.output)
	if err != nil {
		return err
	}
	by := o.by
	switch by {
	case "", list.ByPackage, list.ByChannel, list.ByBundle:
	default:
		return cmdline.Usagef("invalid --by value %q, expected (package|channel|bundle)", by)
	}
	listing, pkg, err := o.listing(ctx, p, args, nil)
	if err != nil {
		return err
	}
	rows, err := listing.Images(list.ImageOptions{Package: pkg, Channels: o.channels.Value(),
		HeadsOnly: o.headsOnly})
	if err != nil {
		return err
	}
	if by != "" {
		groups, err := list.GroupImages(rows, by)
		if err != nil {
			return err
		}
		if format.IsDocument() {
			return p.PrintValue(format, groups)
		}
		t := list.ImageTable(groups, by)
		return p.PrintTable(t.Header, t.Rows...)
	}
	if format.IsDocument() {
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
