package build

import (
	"context"
	"errors"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	bundlecmd "github.com/operator-bindery/bindery/cmd/internal/bundle"
	containerfilecmd "github.com/operator-bindery/bindery/cmd/internal/containerfile"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

func Command(p *option.Session) *cli.Command {
	return p.GroupCommand("build", "build images", buildCatalogCommand(p), bundlecmd.BuildBundleCommand(p, "build bundle"),
		buildComposeCommand(p), containerfilecmd.BuildContainerfileCommand(p))
}

// options are the flags of "build catalog", and of "build compose".
type options struct {
	option.Image
	option.Catalogs
}

// flags are those of "build catalog".
func (o *options) flags() []cli.Flag {
	return program.Flags(o.Destination.Flags(), []cli.Flag{
		o.PlatformsFlag("what", "linux and this machine's architecture"),
		&cli.StringFlag{Name: "base", Aliases: []string{"binary-image"}, Value: "scratch", Destination: &o.BaseImage,
			Usage: "base `IMAGE` of the catalog image", Category: "content"},
		&cli.StringFlag{Name: "server", Destination: &o.ServerName,
			Usage:    "server of the image: static program `FILE` in place of the embedded one, or \"none\"",
			Category: "content"},
	}, o.Form.Flags("what"), o.Layers.Flags("what"), []cli.Flag{
		o.LevelFlag("what"),
		o.CompatFlag("what"),
		o.AllowEmptyFlag("what"),
		o.DryRunFlag(),
		o.NoCacheFlag(), o.CacheSizeFlag(), o.CacheKeyFlag(),
		option.JobsFlag(&o.Jobs, "work"),
		&cli.BoolFlag{Name: "plan", Category: "execution", Destination: &o.Plan,
			Usage: "print the layers with their packages and sizes, without building; --metadata-file - prints JSON"},
	}, o.Result.Flags(), o.Supply.Flags(), o.Registry.Flags())
}

func buildCatalogCommand(p *option.Session) *cli.Command {
	o := &options{}
	return &cli.Command{
		Name:      "catalog",
		Usage:     "build a catalog image from a directory or a database",
		ArgsUsage: "DIR|DB",
		Description: `The catalog is validated, packed into one layer per package, and written to the
destinations of --push, --load and --to; without them to the OCI layout NAME.oci in the working directory.
The build is reproducible: the creation time is SOURCE_DATE_EPOCH, or 1970, and files in layers are dated
1970. Standard output lists the destinations, one per line, and last the image's name with its digest.

Every file in DIR is read as part of the catalog, including hidden ones. List other files, such as .git or
README.md, in DIR/.indexignore, in the syntax of .gitignore.

If there are more packages than layers (--max-layers), packages share layers. The grouping depends on names
and sizes only; --previous keeps that of an earlier image. --plan shows it.` +
			program.Examples("bindery build catalog catalog -t registry.example.com/acme/catalog:v1",
				"bindery build catalog index.db -t example.com/acme/catalog:v1 --to oci-archive:catalog.tar --compression zstd",
				"bindery build catalog catalog -t registry.example.com/acme/catalog:v1 --push --digest-file digest "+
					"--dry-run",
				"bindery build catalog catalog -t example.com/acme/catalog:v1 --server none --cache opm-pogreb --dry-run",
				"bindery build catalog catalog -t registry.example.com/acme/catalog:v1 --sbom spdx,cyclonedx "+
					"--provenance",
				"bindery build catalog index.db --plan --max-layers 3",
				"bindery build catalog index.db --plan --max-layers 5 --previous oci:catalog.oci:v1"),
		Flags: o.flags(),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return buildCatalog(ctx, p, o, args[0])
		})),
	}
}

func buildCatalog(ctx context.Context, p *option.Session, o *options, source string) (err error) {
	with, err := o.CatalogOptions(ctx, p)
	if err == nil {
		_, err = option.StatInput(source)
	}
	if err != nil {
		return err
	}
	previous, err := o.PreviousOptions()
	if err != nil {
		return err
	}
	out, within, err := o.Begin(ctx, p, source, &with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(ctx)) }()
	input, err := o.input(within, p, source, previous, &with)
	if err != nil {
		return out.Finish(ctx, nil, err)
	}
	if o.Plan {
		planned, err := input.Plan(within, with)
		if err == nil {
			err = o.CheckEmpty(p, source, planned.Totals.Packages)
		}
		if err != nil {
			return err
		}
		return o.PrintPlan(p, planned)
	}
	// Return the memory that validation used to the system: otherwise the peak is the sum of both steps.
	debug.FreeOSMemory()
	start := time.Now()
	image, err := build.Catalog(within, input, with)
	image, err = CheckAssembled(p, &o.Catalogs, source, start, image, err)
	return out.Finish(ctx, image, err)
}

// input opens the catalog, and completes the options.
func (o *options) input(ctx context.Context, p *option.Session, source string, previous indeximage.Previous, with *build.Options) (
	_ build.CatalogInput, err error) {
	if err := o.SetServer(p, with); err != nil {
		return build.CatalogInput{}, err
	}
	if previous.Name != "" {
		client, err := p.Client(ctx, &o.Images)
		if err != nil {
			return build.CatalogInput{}, err
		}
		if with.Previous, err = previous.Read(ctx, client, p.Log); err != nil {
			return build.CatalogInput{}, err
		}
	}
	return o.Input(ctx, p, &o.Images, o.Jobs, source, with.Cache)
}

// CheckAssembled reports the image of a catalog, which may be refused because it is empty. err is why there is none.
func CheckAssembled(p *option.Session, o *option.Catalogs, source string, start time.Time, image *build.Image, err error) (*build.Image, error) {
	if err != nil {
		return nil, err
	}
	if err := o.CheckEmpty(p, source, image.Totals.Packages); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	p.ReportAssembled(image, start)
	return image, nil
}
