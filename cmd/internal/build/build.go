package build

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	bundlecmd "github.com/operator-bindery/bindery/cmd/internal/bundle"
	containerfilecmd "github.com/operator-bindery/bindery/cmd/internal/containerfile"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

func Command(p *option.Session) *cli.Command {
	return p.GroupCommand("build", "build images", buildCatalogCommand(p), bundlecmd.BuildBundleCommand(p, "build bundle"),
		buildComposeCommand(p), containerfilecmd.BuildContainerfileCommand(p))
}

func buildCatalogCommand(p *option.Session) *cli.Command {
	all := program.Flags(option.DestinationFlags(), []cli.Flag{
		option.PlatformsFlag("what", "linux and this machine's architecture"),
		&cli.StringFlag{Name: "base", Aliases: []string{"binary-image"}, Value: "scratch",
			Usage: "base `IMAGE` of the catalog image", Category: "content"},
		&cli.StringFlag{Name: "server",
			Usage:    "server of the image: static program `FILE` in place of the embedded one, or \"none\"",
			Category: "content"},
	}, option.FormFlags("what"), option.LayerFlags("what"), []cli.Flag{
		program.MigrateLevelFlag("what"),
		program.InCategory(program.CompatFlag(), "what"),
		option.AllowEmptyFlag("what"),
		option.DryRunFlag(),
		option.NoCacheFlag(), option.CacheSizeFlag(),
		program.InCategory(program.JobsFlag(), "work"),
		option.PlanFlag(),
	}, option.ResultFlags(), option.RegistryFlags())
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
		Flags:  all,
		Action: program.Exactly(1, func(c *cli.Context) error { return buildCatalog(p, c) }),
	}
}

func buildCatalog(p *option.Session, c *cli.Context) error {
	o, err := p.CatalogOptions(c)
	if err != nil {
		return err
	}
	previous, err := option.PreviousOptions(p, c)
	if err != nil {
		return err
	}
	prepare := func(o *build.Options) (build.CatalogInput, error) {
		if err := p.SetServer(c, o); err != nil {
			return build.CatalogInput{}, err
		}
		if previous.Name != "" {
			client, err := p.Client(c)
			if err != nil {
				return build.CatalogInput{}, err
			}
			if o.Previous, err = previous.Read(c.Context, client, p.Log); err != nil {
				return build.CatalogInput{}, err
			}
		}
		return p.CatalogInput(c, o.Cache)
	}
	if c.Bool("plan") {
		return p.PrintPlan(c, o, func(o build.Options) (*build.Planned, error) {
			input, err := prepare(&o)
			if err != nil {
				return nil, err
			}
			planned, err := input.Plan(c.Context, o)
			if err != nil {
				return nil, err
			}
			return planned, p.CheckEmpty(c, c.Args().First(), planned.Totals.Packages)
		})
	}
	return p.MakeImage(c, c.Args().First(), o, func(o build.Options) (*build.Image, error) {
		input, err := prepare(&o)
		if err != nil {
			return nil, err
		}
		// Return the memory that validation used to the system: otherwise the peak is the sum of both steps.
		debug.FreeOSMemory()
		return AssembleCatalog(p, c, c.Args().First(), &o,
			func() (*build.Image, error) { return build.Catalog(c.Context, input, o) })
	})
}

// AssembleCatalog assembles the image of a catalog and reports it. name is the source of the catalog.
func AssembleCatalog(p *option.Session, c *cli.Context, name string, o *build.Options,
	assemble func() (*build.Image, error)) (*build.Image, error) {
	start := time.Now()
	image, err := p.Assemble(o, assemble)
	if err != nil {
		return nil, err
	}
	if err := p.CheckEmpty(c, name, image.Totals.Packages); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	p.ReportAssembled(image, start)
	return image, nil
}
