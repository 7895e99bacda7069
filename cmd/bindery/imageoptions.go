package main

import (
	"cmp"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/internal/layers"
	"github.com/operator-bindery/bindery/internal/version"
)

// formFlags select the format of an image. They are the same in every command that builds images.
func formFlags(group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "label", Usage: "set the label `KEY=VALUE`, overriding those of base and source",
			Category: group},
		&cli.StringSliceFlag{Name: "annotation", Usage: "set the manifest annotation `KEY=VALUE`", Category: group},
		&cli.StringFlag{Name: "format", Value: "oci", Usage: "manifest `FORMAT` (oci|docker)", Category: group},
		&cli.StringFlag{Name: "compression", Value: "gzip",
			Usage:    "layer compression `CODEC` (gzip|zstd|auto); auto writes an index with an image of each",
			Category: group},
	}
}

// layerFlags select the layers of a catalog's image.
func layerFlags(group string) []cli.Flag {
	return []cli.Flag{serveCacheFlag(group), maxLayersFlag(group), previousFlag(group), trustFlag(group)}
}

func maxLayersFlag(group string) cli.Flag {
	return &cli.IntFlag{Name: "max-layers", Value: 100,
		Usage:    "maximum number `N` of layers, including those of the base; container engines support about 125",
		Category: group}
}

// binaryImageFlags select the server for the image of a catalog that comes from another image or an edit.
func binaryImageFlags(group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "binary-image", Aliases: []string{"base"}, Usage: "base `IMAGE` with the server",
			DefaultText: "scratch with this program's server", Category: group},
		&cli.StringFlag{Name: "server", Category: group, DefaultText: "that of the binary image, if any",
			Usage: "server of the image: static program `FILE`, \"base\" (/bin/opm of the binary image), " +
				"\"embedded\" (this program's) or \"none\""},
	}
}

// platformsFlag selects the platforms of an image.
func platformsFlag(group, otherwise string) cli.Flag {
	return &cli.StringSliceFlag{Name: "platform", Usage: "`OS/ARCH` of the image; more than one builds an image index",
		DefaultText: otherwise, Category: group}
}

func dryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "assemble the image without writing it", EnvVars: env("dry-run"),
		Category: "execution"}
}

// buildOptions reads [formFlags] and the flags about base and layers, as far as a command has them.
func (p *program) buildOptions(c *cli.Context) (build.Options, error) {
	if n := c.Int("max-layers"); c.IsSet("max-layers") && n < 1 {
		return build.Options{}, cmdline.Usagef("invalid --max-layers value %d, expected a positive number", n)
	}
	o := build.Options{Format: build.Format(c.String("format")), MaxLayers: c.Int("max-layers"), Jobs: c.Int("jobs")}
	o.Warn = func(text string) { p.log.Warn(text) }
	if o.Format != build.FormatOCI && o.Format != build.FormatDocker {
		return o, cmdline.Usagef("invalid --format value %q, expected (oci|docker)", o.Format)
	}
	var err error
	if o.Compression = build.CompressionAuto; c.String("compression") != string(build.CompressionAuto) {
		if o.Compression, err = layers.ParseCompression(c.String("compression")); err != nil {
			return o, cmdline.Usagef("invalid --compression value %q, expected (gzip|zstd|auto)",
				c.String("compression"))
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
		if o.Base, err = build.NamedBase(client, base); err != nil {
			return o, &cmdline.Error{Class: cmdline.ClassUsage, Object: base, Err: err}
		}
	}
	return o, nil
}

// catalogOptions reads the flags for images of catalogs and indexes, including serve caches and the reuse of earlier
// layers.
func (p *program) catalogOptions(c *cli.Context) (build.Options, error) {
	o, err := p.buildOptions(c)
	if err == nil {
		err = p.setCaches(c, &o)
	}
	if err == nil {
		o.Cache, err = p.known(c)
	}
	return o, err
}

// previousOptions reads [previousFlag] and [trustFlag]. An image that is pushed can reuse layers of its source image.
func previousOptions(c *cli.Context) (indeximage.Previous, error) {
	p := indeximage.Previous{Name: c.String("previous"), Trusted: c.Bool("trust-previous"), FromSource: pushes(c)}
	if p.Trusted && p.Name == "" {
		return p, cmdline.Usagef("--trust-previous needs --previous")
	}
	return p, nil
}

// imageSpec reads [binaryImageFlags], [formFlags] and [layerFlags] for commands that build images of other catalogs.
func (p *program) imageSpec(c *cli.Context) (_ *indeximage.Spec, err error) {
	s := &indeximage.Spec{Server: c.String("server"), Embedded: &p.embedded, Registry: registryOptions(c),
		Program: version.Program(), Log: p.log}
	if s.Build, err = p.catalogOptions(c); err != nil {
		return nil, err
	}
	if len(c.StringSlice("platform")) > 0 {
		if s.Platforms, err = platforms(c); err != nil {
			return nil, err
		}
	}
	if s.Server == build.ServerBase && s.Build.Base == nil {
		return nil, cmdline.Usagef("--server base requires --binary-image")
	}
	if s.Previous, err = previousOptions(c); err != nil {
		return nil, err
	}
	s.Images, err = p.client(c)
	return s, err
}

// setServer reads --server and --platform for commands whose images get this program's server by default.
func (p *program) setServer(c *cli.Context, o *build.Options) error {
	of, err := platforms(c)
	if err != nil {
		return err
	}
	o.Platform = of[0]
	return o.SetServer(cmp.Or(c.String("server"), build.ServerEmbedded), of, &p.embedded)
}

// platforms reads [platformsFlag]; the default is Linux on this machine's architecture.
func platforms(c *cli.Context) ([]v1.Platform, error) {
	list, err := cmdline.List(c.StringSlice("platform"))
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, nil
	}
	var out []v1.Platform
	for _, text := range list {
		p, err := parsePlatform(text)
		if err != nil {
			return nil, err
		}
		// Of a platform that is named twice, the index has one image.
		if !slices.ContainsFunc(out, func(o v1.Platform) bool {
			return o.OS == p.OS && o.Architecture == p.Architecture && o.Variant == p.Variant
		}) {
			out = append(out, p)
		}
	}
	return out, nil
}

// architectures are those of Go for Linux, which images have, too.
var architectures = []string{"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64",
	"ppc64le", "riscv64", "s390x"}

func parsePlatform(text string) (v1.Platform, error) {
	parts := strings.Split(text, "/")
	if len(parts) < 2 || len(parts) > 3 || parts[0] != "linux" || parts[1] == "" {
		return v1.Platform{}, cmdline.Usagef("invalid --platform value %q, expected linux/ARCH or linux/ARCH/VARIANT", text)
	}
	p := v1.Platform{OS: parts[0], Architecture: parts[1]}
	if len(parts) == 3 {
		p.Variant = parts[2]
	}
	if !slices.Contains(architectures, p.Architecture) {
		return p, cmdline.Usagef("invalid --platform value %q, expected linux/ARCH or linux/ARCH/VARIANT with one of (%s)",
			text, strings.Join(architectures, "|"))
	}
	return p, nil
}
