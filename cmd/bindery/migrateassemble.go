package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/render"
)

// catalogImageFlags say what the image of a migrated catalog is. --platform is among the flags of what is read.
func catalogImageFlags() []cli.Flag {
	const group = "image"
	return []cli.Flag{
		&cli.StringFlag{Name: "binary-image", Aliases: []string{"base"}, Usage: "`IMAGE` that the server and everything else comes from", DefaultText: "an empty image with this program's server", Category: group},
		&cli.StringFlag{Name: "server", Category: group, DefaultText: "that of the binary image, if it starts one",
			Usage: "who serves: static program `FILE`, \"base\" for /bin/opm of the binary image, \"embedded\" for this program's, \"none\""},
		&cli.StringSliceFlag{Name: "label", Usage: "`KEY=VALUE` label, over those of the source", Category: group},
		&cli.StringSliceFlag{Name: "annotation", Usage: "`KEY=VALUE` annotation of the manifest, over those of the source", Category: group},
		&cli.StringFlag{Name: "format", Value: "oci", Usage: "`FORMAT` of the manifest (oci|docker)", Category: group},
		&cli.StringFlag{Name: "compression", Value: "gzip", Usage: "`CODEC` of the layers (gzip|zstd|auto); auto is an index with an image of each", Category: group},
		serveCacheFlag(group),
		&cli.IntFlag{Name: "max-layers", Value: 100, Usage: "at most `N` layers, those of the binary image included; container engines take some 125", Category: group},
		previousFlag(group), trustFlag(group),
	}
}

// catalogImage makes images of catalog directories. It is safe for concurrent use.
type catalogImage struct {
	p         *program
	c         *cli.Context
	o         build.Options // as far as all images have them in common
	platforms []v1.Platform // that were asked for
}

// catalogImage reads [catalogImageFlags].
func (p *program) catalogImage(c *cli.Context) (*catalogImage, error) {
	i := &catalogImage{p: p, c: c}
	var err error
	if i.o, err = p.catalogOptions(c); err != nil {
		return nil, err
	}
	if len(c.StringSlice("platform")) > 0 {
		if i.platforms, err = platforms(c); err != nil {
			return nil, err
		}
	}
	if c.String("server") == "base" && i.o.Base == nil {
		return nil, cmdline.Usagef("--server base: there is no --binary-image that could have a server")
	}
	return i, nil
}

// assemble makes the image of the catalog in a directory, in the directory work. from describes the image that the catalog
// comes from, nil if it comes from none: its platforms and its labels are kept. The caller closes the image.
func (i *catalogImage) assemble(ctx context.Context, dir, work string, from *images.Description, jobs int, events func(build.Layer)) (*build.Image, error) {
	root, err := declcfg.OpenDir(dir)
	if err != nil {
		return nil, err
	}
	// An image that is not valid would not be served.
	files, err := build.ReadCatalog(ctx, root, build.ReadOptions{Jobs: jobs, Warn: i.p.warnAt, Known: i.o.Known, Program: validator()})
	if err != nil {
		return nil, err
	}
	debug.FreeOSMemory() // what was loaded, and what the migration took
	o := i.o
	o.Dir, o.Jobs, o.Events = work, jobs, events
	if o.System, err = registryOptions(i.c).System(work); err != nil {
		return nil, err
	}
	of, err := i.platformsOf(from)
	if err != nil {
		return nil, err
	}
	if from != nil {
		o.Kept, o.KeptAnnotations = keptOf(from)
	}
	source := ""
	if from != nil {
		source = from.Name
	}
	if o.Previous, err = i.p.readSource(i.c, source); err != nil {
		return nil, err
	}
	if err := i.p.settleServer(i.c, &o, of); err != nil {
		return nil, err
	}
	return build.Catalog(ctx, build.CatalogInput{FS: root, Files: files}, o)
}

// platformsOf are the platforms of the image: those that were asked for, else those of what it comes from.
func (i *catalogImage) platformsOf(from *images.Description) ([]v1.Platform, error) {
	if i.platforms != nil {
		return i.platforms, nil
	}
	if from == nil {
		return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, nil
	}
	var out []v1.Platform
	for _, v := range from.Variants {
		if v.Platform.OS != "linux" {
			i.p.log.Warn(fmt.Sprintf("%s: left out the platform %s/%s: catalogs are served on Linux", images.WithoutCredentials(from.Name), v.Platform.OS, v.Platform.Architecture))
			continue
		}
		out = append(out, v1.Platform{OS: v.Platform.OS, Architecture: v.Platform.Architecture, Variant: v.Platform.Variant})
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%q is for no platform of Linux: --platform says which the catalog is for", images.WithoutCredentials(from.Name))
	}
	return out, nil
}

// sameOnAll checks, where the migration is to be verified, that what is read of one platform is what all platforms hold that
// the image will be for.
func (i *catalogImage) sameOnAll(ctx context.Context, m *migration, from *images.Description) error {
	if !m.o.Verify || from == nil || len(from.Variants) == 1 {
		return nil
	}
	of, err := i.platformsOf(from)
	if err != nil {
		return err
	}
	wanted := func(p v1.Platform) bool {
		return slices.ContainsFunc(of, func(w v1.Platform) bool {
			return w.OS == p.OS && w.Architecture == p.Architecture && w.Variant == p.Variant
		})
	}
	return render.SameOnAll(ctx, from, wanted, m.o.Render)
}
