package index

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/list"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/mirror/imagemap"
	"github.com/operator-bindery/bindery/render"
)

// mirrorOptions are the flags of "registry mirror".
type mirrorOptions struct {
	option.Reading
	to, database, output, name string
	maxComponents              int
	keepHost, headsOnly        bool
	packages, channels         cli.StringSlice
}

func registryMirrorCommand(p *option.Session) *cli.Command {
	o := &mirrorOptions{}
	return &cli.Command{
		Name:      "mirror",
		Usage:     "map the images of a catalog to a mirror registry",
		ArgsUsage: "[REF]",
		Description: option.CatalogHelp + ` The catalog must be valid.

Maps the images of the bundles, their related images, and the image of the catalog. The default output has
lines SOURCE=DESTINATION for "oc image mirror -f"; no image is copied. An image keeps its tag; one that is
named by digest gets a tag derived from the digest. Two images with the same destination are an error.

The other formats configure a cluster, or podman and this program, to use the mirror.` +
			program.Examples("bindery registry mirror catalog --to mirror.example.com:5000/olm",
				"bindery registry mirror --database index.db --to mirror.example.com -o registries-conf",
				"bindery registry mirror catalog --to mirror.example.com --max-components 2 --heads-only -o idms"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "to", Destination: &o.to, Usage: "mirror `REGISTRY[/PATH]`"},
			&cli.StringFlag{Name: "database", Destination: &o.database, Aliases: []string{"d"},
				Usage: "`FILE` of an index database, in place of REF"},
			program.AnswerFlag(&o.output, mirrorFormats...),
			&cli.StringFlag{Name: "name", Destination: &o.name, Value: "catalog-mirror", Usage: "`NAME` of the cluster object"},
			&cli.IntFlag{Name: "max-components", Destination: &o.maxComponents,
				Usage:       "maximum number `N` of path components at the mirror; the rest are joined with dashes",
				DefaultText: "no limit"},
			&cli.BoolFlag{Name: "keep-host", Destination: &o.keepHost, Usage: "prefix paths at the mirror with the name of the source registry"},
			&cli.StringSliceFlag{Name: "package", Destination: &o.packages, Aliases: []string{"p"},
				Usage: "only bundles of `PACKAGE`; can be repeated"},
			&cli.StringSliceFlag{Name: "channel", Destination: &o.channels, Usage: "only bundles of `CHANNEL`; can be repeated"},
			&cli.BoolFlag{Name: "heads-only", Destination: &o.headsOnly, Usage: "only bundles that are channel heads"},
			o.CompatFlag(""),
		}, o.Reading.Flags()...),
		Action: program.Between(0, 1, p.Action(func(ctx context.Context, args []string) error {
			return o.run(ctx, p, strings.Join(args, ""))
		})),
	}
}

// mirrorFormats are the other forms of the answer. The mapping is its text, too.
var mirrorFormats = []program.Format{"mapping", "idms", "itms", "icsp", "registries-conf"}

// run maps the images of a catalog, which --database may name in place of ref.
func (o *mirrorOptions) run(ctx context.Context, p *option.Session, ref string) error {
	format, err := program.AnswerFormat(o.output, mirrorFormats...)
	if err != nil {
		return err
	}
	switch db := o.database; {
	case (ref == "") == (db == ""):
		return cmdline.Usagef("either REF or --database FILE is needed")
	case o.to == "":
		return cmdline.Usagef(`required flag(s) "to" not set`)
	case strings.Contains(o.to, "@"):
		return cmdline.Usagef(
			"invalid --to value, expected REGISTRY[/PATH]: it has an @, and must not contain credentials")
	case db != "":
		ref = db
	}
	images, err := o.images(ctx, p, ref)
	if err != nil {
		return err
	}
	mappings, err := imagemap.Map(images,
		imagemap.Options{To: o.to, MaxComponents: o.maxComponents, KeepHost: o.keepHost})
	if err != nil {
		e := &cmdline.Error{Class: cmdline.ClassInput, Err: err}
		if !o.keepHost && strings.Contains(err.Error(), "would both be") {
			e.Hint = "--keep-host prefixes the paths with the registry names"
		}
		return e
	}
	text, err := mirrorText(format, o.name, p.PlainHTTP, mappings)
	if err != nil {
		return err
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	reportUnmapped(p, format, mappings)
	if format.IsDocument() {
		return p.PrintValue(format, mappings)
	}
	_, err = p.Stdout.Write(text)
	return err
}

// reportUnmapped warns about images that a cluster's configuration format cannot contain.
func reportUnmapped(p *option.Session, format program.Format, mappings []imagemap.Mapping) {
	byDigest := 0
	for _, m := range mappings {
		if strings.Contains(m.Source, "@") {
			byDigest++
		}
	}
	byTag := len(mappings) - byDigest
	switch {
	case (format == "idms" || format == "icsp") && byTag > 0:
		p.Log.Warn(fmt.Sprintf("%s named by tag, which %s does not map: use -o itms", imagesText(byTag), format))
	case format == "itms" && byDigest > 0:
		p.Log.Warn(fmt.Sprintf("%s named by digest, which itms does not map: use -o idms", imagesText(byDigest)))
	}
}

func imagesText(n int) string {
	if n == 1 {
		return "1 image is"
	}
	return fmt.Sprintf("%d images are", n)
}

// mirrorText returns the answer in one of the formats except JSON.
func mirrorText(format program.Format, name string, plain bool, mappings []imagemap.Mapping) ([]byte, error) {
	switch format {
	case "idms":
		return imagemap.DigestMirrorSet(name, mappings)
	case "itms":
		return imagemap.TagMirrorSet(name, mappings)
	case "icsp":
		return imagemap.ContentSourcePolicy(name, mappings)
	case "registries-conf":
		return imagemap.RegistriesConf(mappings, plain), nil
	}
	return imagemap.Lines(mappings), nil
}

// images returns the images of a catalog: first the catalog's image if it is in a registry, then those of its
// bundles, sorted.
func (o *mirrorOptions) images(ctx context.Context, p *option.Session, ref string) ([]string, error) {
	kind, err := render.Classify(ref)
	if err != nil {
		return nil, err
	}
	if o.database != "" && kind != render.Database {
		if kind == render.Image {
			return nil, cmdline.Usagef("--database %q: no such file; pass an image as an argument", ref)
		}
		return nil, cmdline.Usagef("--database %q is a %s; pass it as an argument", ref, kind)
	}
	listing, err := o.ListingOf(ctx, p, ref, nil)
	if err != nil {
		return nil, err
	}
	packages, err := cmdline.List(o.packages.Value())
	if err != nil {
		return nil, err
	}
	images := map[string]bool{}
	if len(packages) == 0 {
		packages = []string{""}
	}
	var errs []error
	for _, pkg := range packages {
		rows, err := listing.Images(list.ImageOptions{Package: pkg, Channels: o.channels.Value(),
			HeadsOnly: o.headsOnly})
		errs = append(errs, err)
		for _, r := range rows {
			images[r.Image] = true
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var out []string
	if from, err := program.Transports.Source(ref); kind == render.Image && err == nil && from.Transport == transport.Docker {
		out = []string{ref}
	}
	return append(out, slices.Sorted(maps.Keys(images))...), nil
}
