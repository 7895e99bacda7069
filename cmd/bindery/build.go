package main

import (
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

func (p *program) buildCommand() *cli.Command {
	return p.groupCommand("build", "build images", p.buildCatalogCommand(), p.buildBundleCommand("build bundle"),
		p.buildComposeCommand(), p.buildContainerfileCommand())
}

func (p *program) buildCatalogCommand() *cli.Command {
	all := flags(destinationFlags(), []cli.Flag{
		platformsFlag("what", "linux and this machine's architecture"),
		&cli.StringFlag{Name: "base", Aliases: []string{"binary-image"}, Value: "scratch",
			Usage: "base `IMAGE` of the catalog image", Category: "content"},
		&cli.StringFlag{Name: "server",
			Usage:    "server of the image: static program `FILE` in place of the embedded one, or \"none\"",
			Category: "content"},
	}, formFlags("what"), layerFlags("what"), []cli.Flag{
		migrateLevelFlag("what"),
		inCategory(compatFlag(), "what"),
		allowEmptyFlag("what"),
		dryRunFlag(),
		noCacheFlag(), cacheSizeFlag(),
		inCategory(jobsFlag(), "work"),
		planFlag(),
	}, resultFlags(), registryFlags())
	return &cli.Command{
		Name:      "catalog",
		Usage:     "build a catalog image from a directory or a database",
		ArgsUsage: "DIR|DB",
		Description: `The catalog is validated, packed into one layer per package, and written to the
destinations of --push, --load and --output; without them to the OCI layout NAME.oci in the working directory.
The build is reproducible: the creation time is SOURCE_DATE_EPOCH, or 1970, and files in layers are dated
1970. Standard output lists the destinations, one per line, and last the image's name with its digest.

Every file in DIR is read as part of the catalog, including hidden ones. List other files, such as .git or
README.md, in DIR/.indexignore, in the syntax of .gitignore.

If there are more packages than layers (--max-layers), packages share layers. The grouping depends on names
and sizes only; --previous keeps that of an earlier image. --plan shows it.` +
			examples("bindery build catalog catalog -t registry.example.com/acme/catalog:v1",
				"bindery build catalog index.db -t example.com/acme/catalog:v1 --output oci-archive:catalog.tar --compression zstd",
				"bindery build catalog catalog -t registry.example.com/acme/catalog:v1 --push --digest-file digest "+
					"--dry-run",
				"bindery build catalog catalog -t example.com/acme/catalog:v1 --server none --cache opm-pogreb --dry-run",
				"bindery build catalog catalog -t registry.example.com/acme/catalog:v1 --sbom spdx,cyclonedx "+
					"--provenance",
				"bindery build catalog index.db --plan --max-layers 3",
				"bindery build catalog index.db --plan --max-layers 5 --previous oci:catalog.oci:v1"),
		Flags:  all,
		Action: exactly(1, p.buildCatalog),
	}
}

func (p *program) buildCatalog(c *cli.Context) error {
	o, err := p.catalogOptions(c)
	if err != nil {
		return err
	}
	previous, err := previousOptions(c)
	if err != nil {
		return err
	}
	prepare := func(o *build.Options) (build.CatalogInput, error) {
		if err := p.setServer(c, o); err != nil {
			return build.CatalogInput{}, err
		}
		if previous.Name != "" {
			client, err := p.client(c)
			if err != nil {
				return build.CatalogInput{}, err
			}
			if o.Previous, err = previous.Read(c.Context, client, p.log); err != nil {
				return build.CatalogInput{}, err
			}
		}
		return p.catalogInput(c, o.Cache)
	}
	if c.Bool("plan") {
		return p.printPlan(c, o, func(o build.Options) (*build.Planned, error) {
			input, err := prepare(&o)
			if err != nil {
				return nil, err
			}
			planned, err := input.Plan(c.Context, o)
			if err != nil {
				return nil, err
			}
			return planned, p.checkEmpty(c, c.Args().First(), planned.Totals.Packages)
		})
	}
	return p.makeImage(c, c.Args().First(), o, func(o build.Options) (*build.Image, error) {
		input, err := prepare(&o)
		if err != nil {
			return nil, err
		}
		// Return the memory that validation used to the system: otherwise the peak is the sum of both steps.
		debug.FreeOSMemory()
		return p.assembleCatalog(c, c.Args().First(), &o,
			func() (*build.Image, error) { return build.Catalog(c.Context, input, o) })
	})
}

// assembleCatalog assembles the image of a catalog and reports it. name is the source of the catalog.
func (p *program) assembleCatalog(c *cli.Context, name string, o *build.Options,
	assemble func() (*build.Image, error)) (*build.Image, error) {
	start := time.Now()
	image, err := p.assemble(o, assemble)
	if err != nil {
		return nil, err
	}
	if err := p.checkEmpty(c, name, image.Totals.Packages); err != nil {
		return nil, errors.Join(err, image.Close())
	}
	p.reportAssembled(image, start)
	return image, nil
}

// reportAssembled logs the size of an assembled image.
func (p *program) reportAssembled(image *build.Image, start time.Time) {
	p.log.Info(fmt.Sprintf("assembled %s in %s, %s, in %s", count(image.Totals.Packages, "package"), layerCount(image),
		cmdline.FormatSize(image.Totals.Size), time.Since(start).Round(time.Millisecond)))
}

// makeImage is the common part of all commands that build images: it determines the destinations before any work,
// assembles the image while registries are checked, copies it and reports. in is the input, which destinations must not
// overwrite. account is called before the result is printed.
func (p *program) makeImage(c *cli.Context, in string, o build.Options,
	assemble func(build.Options) (*build.Image, error), account ...func() error) (err error) {
	target, err := readTarget(c)
	if err == nil {
		err = p.prepareSigning(c, target)
	}
	if err == nil {
		err = p.prepareSupplies(c, target, in)
	}
	if err != nil {
		return err
	}
	if err := checkResultFiles(c, in); err != nil {
		return err
	}
	dests := target.destinations
	if c.Bool("dry-run") {
		dests = nil
	}
	if in != "" {
		if err := checkDestinations(in, dests); err != nil {
			return err
		}
	}
	work, err := p.copyOptions(c).Workspace(c.Context, dests)
	if err != nil {
		return withOutputHint(c, err)
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	o.Dir = work.Dir()
	if _, err = registryOptions(c).System(c.Context, work.Dir()); err != nil { // before the work
		return err
	}
	command := c.Context
	p.checking = p.beginCheck(c, dests)
	defer func() {
		check, _ := p.checking.wait()
		err = errors.Join(err, check.Close(command))
		p.checking.end(nil)
		p.checking, c.Context = nil, command
	}()
	image, err := assemble(o)
	check, denied := p.checking.wait()
	if denied != nil {
		if err == nil {
			_ = image.Close() // the registry's refusal is the error
		}
		return denied
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	results, err := p.copyImage(c.Context, image, dests, c, check)
	if err != nil {
		return err
	}
	for _, f := range account {
		if err := f(); err != nil {
			return err
		}
	}
	return p.report(c, target, image, results)
}

// assemble shows on a terminal the progress of assembling an image. It runs work when the registries are known to be
// writable.
func (p *program) assemble(o *build.Options, work func() (*build.Image, error)) (*build.Image, error) {
	if _, err := p.checking.wait(); err != nil {
		return nil, err
	}
	if err := p.signing.opened(); err != nil {
		return nil, err
	}
	progress := p.progress()
	defer progress.Close()
	o.Planned = func(layers int) { progress.Update(func(s *cmdline.State) { s.All += layers }) }
	o.Events = func(l build.Layer) {
		progress.Update(func(s *cmdline.State) {
			s.What, s.Units, s.Now = "packing", "layers", strings.Join(l.Packages, ", ")
			s.Done, s.Bytes = s.Done+1, s.Bytes+l.Uncompressed
		})
		p.log.Debug("built layer", "kind", string(l.Kind), "digest", l.Digest, "bytes", l.Size)
	}
	return work()
}

// maxSourceDate is the last second of the year 9999: documents write a year in four digits (RFC 3339).
const maxSourceDate = 253_402_300_799

// sourceDate returns the time for the configuration of an image: SOURCE_DATE_EPOCH (reproducible-builds.org), or zero.
func sourceDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 || seconds > maxSourceDate {
		return time.Time{}, cmdline.Usagef("SOURCE_DATE_EPOCH is %.100q, expected seconds since 1970, at most %d", text,
			maxSourceDate)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// layerCount describes the number of an image's layers, and how many of them were reused.
func layerCount(image *build.Image) string {
	known := 0
	for _, l := range image.Layers {
		if l.Remembered {
			known++
		}
	}
	text := count(image.Totals.Layers, "layer")
	if known > 0 {
		text += fmt.Sprintf(" (%d cached)", known)
	}
	return text
}
