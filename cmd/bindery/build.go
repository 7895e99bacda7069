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
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/layers"
	"github.com/operator-bindery/bindery/serve"
)

func (p *program) buildCommand() *cli.Command {
	return &cli.Command{
		Name:        "build",
		Usage:       "build images",
		Action:      p.group,
		Subcommands: []*cli.Command{p.buildCatalogCommand(), p.buildBundleCommand("build bundle"), p.buildComposeCommand(), p.buildContainerfileCommand()},
	}
}

func (p *program) buildCatalogCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "platform", Usage: "`OS/ARCH` of the image; several make an index (default linux and this machine's)", Category: "what"},
		&cli.StringFlag{Name: "base", Aliases: []string{"binary-image"}, Value: "scratch", Usage: "`IMAGE` below the catalog", Category: "what"},
		&cli.StringFlag{Name: "server", Usage: "static program `FILE` that serves, in place of the one inside; \"none\" for an image without", Category: "what"},
		&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` label", Category: "what"},
		&cli.StringSliceFlag{Name: "annotation", Usage: "`KEY=VALUE` annotation of the manifest", Category: "what"},
		&cli.StringFlag{Name: "format", Value: "oci", Usage: "`FORMAT` of the manifest (oci|docker)", Category: "what"},
		&cli.StringFlag{Name: "compression", Value: "gzip", Usage: "`CODEC` of the layers (gzip|zstd|auto); auto is an index with an image of each", Category: "what"},
		serveCacheFlag("what"),
		&cli.IntFlag{Name: "max-layers", Value: 100, Usage: "at most `N` layers, those of the base included; container engines take some 125", Category: "what"},
		migrateLevelFlag("what"),
		inCategory(compatFlag(), "what"),
		allowEmptyFlag("what"),
		&cli.BoolFlag{Name: "dry-run", Usage: "assemble the image and write it nowhere", EnvVars: env("dry-run"), Category: "work"},
		noCacheFlag(), cacheSizeFlag(),
		inCategory(jobsFlag(), "work"),
	}
	flags = append(append(destinationFlags(), append(flags, previousFlag("what"), trustFlag("what"), planFlag())...), append(resultFlags(), registryFlags()...)...)
	return &cli.Command{
		Name:      "catalog",
		Usage:     "build a catalog image from a directory or a database",
		ArgsUsage: "DIR|DB",
		Description: "The catalog is validated, packed one layer a package, and written wherever --push, --load and --output say; without\n" +
			"them an OCI layout named after the image (NAME.oci) is written to the working directory. The same input gives the same\n" +
			"digest on any machine; the time in the configuration is SOURCE_DATE_EPOCH, or 1970, and\n" +
			"files in layers are of 1970. Each line of standard output is a place\n" +
			"that was written, the last one is the image's name with its digest.\n\n" +
			"Every file in DIR is read as a part of the catalog, hidden ones as well. What else is there, such as .git or README.md,\n" +
			"is left out if a file .indexignore in DIR names it, in the syntax of .gitignore.\n\n" +
			"Where there are more packages than layers (--max-layers), some share one. Which ones depends on names and sizes alone;\n" +
			"--previous keeps them together as they are in an earlier image. --plan shows it." +
			examples("bindery build catalog catalog -t registry.example.com/acme/catalog:v1",
				"bindery build catalog index.db -t acme/catalog:v1 --output oci-archive:catalog.tar --compression zstd",
				"bindery build catalog catalog -t registry.example.com/acme/catalog:v1 --push --digest-file digest --dry-run",
				"bindery build catalog catalog -t acme/catalog:v1 --server none --cache opm-pogreb --dry-run",
				"bindery build catalog index.db --plan --max-layers 3",
				"bindery build catalog index.db --plan --max-layers 5 --previous oci:catalog.oci:v1"),
		Flags:  flags,
		Action: exactly(1, p.buildCatalog),
	}
}

func (p *program) buildCatalog(c *cli.Context) error {
	o, err := p.catalogOptions(c)
	if err != nil {
		return err
	}
	prepare := func(o *build.Options) (build.CatalogInput, error) {
		of, err := platforms(c)
		if err != nil {
			return build.CatalogInput{}, err
		}
		o.Platform = of[0]
		if o.Servers, err = p.servers(c, of); err != nil {
			return build.CatalogInput{}, err
		}
		if o.Previous, err = p.readPrevious(c); err != nil {
			return build.CatalogInput{}, err
		}
		return p.catalogInput(c, o.Known)
	}
	if c.Bool("plan") {
		return p.printPlan(c, o, func(o build.Options) (*build.Planned, error) {
			input, err := prepare(&o)
			if err != nil {
				return nil, err
			}
			planned, err := build.Plan(c.Context, input, o)
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
		// What validation took is free now, but still the program's: without this the peak is that of both steps together.
		debug.FreeOSMemory()

		start := time.Now()
		image, err := p.assemble(&o, func() (*build.Image, error) { return build.Catalog(c.Context, input, o) })
		if err != nil {
			return nil, err
		}
		if err := p.checkEmpty(c, c.Args().First(), image.Totals.Packages); err != nil {
			return nil, errors.Join(err, image.Close())
		}
		p.log.Info(fmt.Sprintf("assembled %s in %s, %s, in %s", count(image.Totals.Packages, "package"), layerCount(image),
			cmdline.FormatSize(image.Totals.Size), time.Since(start).Round(time.Millisecond)))
		return image, nil
	})
}

// makeImage does what is the same for all images that are built: it finds out where the image goes before any work, lets it
// be made, carries it there and reports. in is what the image is made from; it is not written to. What tell prints comes
// first.
func (p *program) makeImage(c *cli.Context, in string, o build.Options, make func(build.Options) (*build.Image, error), tell ...func() error) (err error) {
	target, err := readTarget(c)
	if err != nil {
		return err
	}
	if err := checkResultFiles(c, in); err != nil {
		return err
	}
	registry := registryOptions(c)
	dests := target.destinations
	if c.Bool("dry-run") {
		dests = nil
	}
	if in != "" {
		if err := checkDestinations(in, dests); err != nil {
			return err
		}
	}
	work, err := images.NewWorkspace(c.Context, dests, "")
	if err != nil {
		return withOutputHint(c, err)
	}
	defer func() { err = errors.Join(err, work.Close()) }()
	o.Dir = work.Dir()
	if o.System, err = registry.System(work.Dir()); err != nil {
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
	image, err := make(o)
	check, denied := p.checking.wait()
	if denied != nil {
		if err == nil {
			_ = image.Close()
		}
		return denied
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	results, err := p.copyImage(c.Context, image, dests, registry, c, check)
	var stale *build.StaleError
	if errors.As(err, &stale) {
		p.log.Warn(fmt.Sprintf("layer %s is not what the cache remembers: the image is made without the cache", stale.Layer))
		if err := image.Close(); err != nil {
			return err
		}
		o.Known = nil
		var again *build.Image // the first one is closed in any case
		if again, err = make(o); err != nil {
			return err
		}
		image = again
		results, err = p.copyImage(c.Context, image, dests, registry, c, check)
	}
	if err != nil {
		return err
	}
	image.Pushed(results)
	for _, f := range tell {
		if err := f(); err != nil {
			return err
		}
	}
	return p.report(c, target, image, results)
}

// assemble shows on a terminal what the assembly of an image is at. It begins when the registries can be written to.
func (p *program) assemble(o *build.Options, work func() (*build.Image, error)) (*build.Image, error) {
	if _, err := p.checking.wait(); err != nil {
		return nil, err
	}
	status := cmdline.NewStatus(p.stderr, p.bars)
	defer status.Close()
	written := 0
	o.Events = func(l build.Layer) {
		written++
		status.Set(fmt.Sprintf("assembling: layer %d, %s", written, strings.Join(l.Packages, ", ")))
		p.log.Debug("built layer", "kind", string(l.Kind), "digest", l.Digest, "bytes", l.Size)
	}
	return work()
}

// buildOptions reads the flags that say what the image is.
func (p *program) buildOptions(c *cli.Context) (build.Options, error) {
	if n := c.Int("max-layers"); c.IsSet("max-layers") && n < 1 {
		return build.Options{}, cmdline.Usagef("invalid --max-layers value %d, expected a positive number", n)
	}
	o := build.Options{Format: build.Format(c.String("format")), MaxLayers: c.Int("max-layers"), Jobs: c.Int("jobs"), CacheID: serve.CacheID()}
	o.Warn = func(text string) { p.log.Warn(text) }
	if o.Format != build.FormatOCI && o.Format != build.FormatDocker {
		return o, cmdline.Usagef("invalid --format value %q, expected (oci|docker)", o.Format)
	}
	var err error
	if o.Compression = build.CompressionAuto; c.String("compression") != string(build.CompressionAuto) {
		if o.Compression, err = layers.ParseCompression(c.String("compression")); err != nil {
			return o, cmdline.Usagef("invalid --compression value %q, expected (gzip|zstd|auto)", c.String("compression"))
		}
	}
	if o.Labels, err = cmdline.Pairs("label", c.StringSlice("label")); err != nil {
		return o, err
	}
	if o.Annotations, err = cmdline.Pairs("annotation", c.StringSlice("annotation")); err != nil {
		return o, err
	}
	if o.Created, err = sourceDate(); err != nil {
		return o, err
	}
	if base := c.String("base"); base != "scratch" && base != "" {
		client, err := p.client(c)
		if err != nil {
			return o, err
		}
		if o.Base, err = client.Reference(base); err != nil {
			return o, &cmdline.Error{Class: cmdline.ClassUsage, Object: base, Err: err}
		}
	}
	return o, nil
}

// catalogOptions are those of images of catalogs and indexes: with serve caches, and with what earlier builds have left.
func (p *program) catalogOptions(c *cli.Context) (build.Options, error) {
	o, err := p.buildOptions(c)
	if err == nil {
		err = p.setCaches(c, &o)
	}
	if err == nil {
		o.Known, err = p.known(c)
	}
	return o, err
}

// nativeCache is the cache file that the server in the image finds beside the catalog. It names the files that it was
// made from: the server uses it only as long as these are as they were.
func (p *program) nativeCache(c build.PackageCatalog) (build.CacheFile, error) {
	sources := make([]serve.SourceFile, len(c.Sources))
	for i, s := range c.Sources {
		sources[i] = serve.SourceFile{Name: s.Name, Size: s.Size, Digest: s.Digest, Packages: 1}
	}
	var notices []string
	large := func(l serve.LargeBundle) {
		notices = append(notices, fmt.Sprintf("bundle %q in channel %q of package %q: an answer of %d bytes is larger than clients receive by default (%d)",
			l.Bundle, l.Channel, l.Package, l.Size, serve.ClientMessageLimit))
	}
	content, err := serve.EncodePackageFunc(c.Catalog, large, sources...)
	return build.CacheFile{Name: serve.CacheFileName(c.Package), Content: content, Notices: notices}, err
}

// sourceDate is the time in the configuration of an image: SOURCE_DATE_EPOCH (reproducible-builds.org), or zero.
func sourceDate() (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		return time.Time{}, nil
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil || seconds < 0 {
		return time.Time{}, cmdline.Usagef("SOURCE_DATE_EPOCH is %q, expected seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}

// layerCount tells how many layers an image has, and how many of them did not have to be made.
func layerCount(image *build.Image) string {
	known := 0
	for _, l := range image.Layers {
		if l.Remembered {
			known++
		}
	}
	text := count(image.Totals.Layers, "layer")
	if known > 0 {
		text += fmt.Sprintf(" (%d known from before)", known)
	}
	return text
}
