package option

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/platform"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/layers"
)

// Image is an image that is built: what is read for it, its form and layers, and where it goes.
type Image struct {
	Images
	Destination
	Form
	Layers
	Base
	Result
	Supply
	Jobs         int
	DryRun, Plan bool
}

// Form is the format of an image.
type Form struct {
	Labels, Annotations cli.StringSlice
	Format              build.Format
	Compression         layers.Compression
}

// Flags are the flags of every command that builds images.
func (o *Form) Flags(group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "label", Usage: "set the label `KEY=VALUE`, overriding those of base and source",
			Category: group, Destination: &o.Labels},
		&cli.StringSliceFlag{Name: "annotation", Usage: "set the manifest annotation `KEY=VALUE`", Category: group,
			Destination: &o.Annotations},
		&cli.StringFlag{Name: "format", Value: "oci", Usage: "manifest `FORMAT` (oci|docker)", Category: group,
			Destination: (*string)(&o.Format)},
		&cli.StringFlag{Name: "compression", Value: "gzip",
			Usage:    "layer compression `CODEC` (gzip|zstd|auto); auto writes an index with an image of each",
			Category: group, Destination: (*string)(&o.Compression)},
	}
}

// Layers are the layers of a catalog's image.
type Layers struct {
	Caches        cli.StringSlice
	MaxLayers     int
	Previous      string // the image whose grouping of packages into layers is kept
	TrustPrevious bool
}

// Flags are the flags of every command that builds images of catalogs.
func (o *Layers) Flags(group string) []cli.Flag {
	return []cli.Flag{o.CacheFlag(group), o.MaxFlag(group),
		&cli.StringFlag{Name: "previous", Category: group, Destination: &o.Previous,
			Usage: "keep the grouping of packages into layers of `IMAGE`; ignored if it does not exist"},
		&cli.BoolFlag{Name: "trust-previous", Category: group, Destination: &o.TrustPrevious,
			Usage: "trust the content records of the --previous image: reuse layers of unchanged packages, even without " +
				"a cache"},
	}
}

// CacheFlag selects the serve caches of an image.
func (o *Layers) CacheFlag(group string) cli.Flag {
	return &cli.StringSliceFlag{Name: "cache", Category: group, DefaultText: string(build.ServeCacheNative),
		Usage: "serve cache `KIND` in the image; can be repeated (" + cacheNames() + ")", Destination: &o.Caches}
}

// MaxFlag bounds the number of layers.
func (o *Layers) MaxFlag(group string) cli.Flag {
	return &cli.IntFlag{Name: "max-layers", Value: 100,
		Usage:    "maximum number `N` of layers, including those of the base; container engines support about 125",
		Category: group, Destination: &o.MaxLayers}
}

// Base is the image below a catalog, and the server in it.
type Base struct{ BaseImage, ServerName string }

// Flags select the server for the image of a catalog that comes from another image or an edit.
func (o *Base) Flags(group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "binary-image", Aliases: []string{"base"}, Usage: "base `IMAGE` with the server",
			DefaultText: "scratch with this program's server", Category: group, Destination: &o.BaseImage},
		&cli.StringFlag{Name: "server", Category: group, DefaultText: "that of the binary image, if any",
			Usage: "server of the image: static program `FILE`, \"base\" (/bin/opm of the binary image), " +
				"\"embedded\" (this program's) or \"none\"", Destination: &o.ServerName},
	}
}

// DryRunFlag builds the image and writes nothing.
func (o *Image) DryRunFlag() cli.Flag {
	return &cli.BoolFlag{Name: "dry-run", Usage: "assemble the image without writing it", EnvVars: program.Env("dry-run"),
		Category: "execution", Destination: &o.DryRun}
}

// BuildOptions reads the flags about the form and the flags about base and layers, as far as a command has them.
func (o *Image) BuildOptions(ctx context.Context, p *Session) (build.Options, error) {
	if n := o.MaxLayers; p.Given("max-layers") && n < 1 {
		return build.Options{}, cmdline.Usagef("invalid --max-layers value %d, expected a positive number", n)
	}
	with := build.Options{Format: o.Format, Compression: o.Compression, MaxLayers: o.MaxLayers, Jobs: o.Jobs}
	with.Warn = func(text string) { p.Log.Warn(text) }
	err := with.Check()
	if err != nil {
		return with, err
	}
	if with.Labels, err = cmdline.Pairs("label", o.Labels.Value()); err != nil {
		return with, err
	}
	if with.Annotations, err = cmdline.Pairs("annotation", o.Annotations.Value()); err != nil {
		return with, err
	}
	if with.Created, err = program.SourceDate(); err != nil {
		return with, err
	}
	if base := o.BaseImage; base != "scratch" && base != "" {
		client, err := p.Client(ctx, &o.Images)
		if err != nil {
			return with, err
		}
		if with.Base, err = build.NamedBase(client, base); err != nil {
			return with, &cmdline.Error{Class: cmdline.ClassUsage, Object: base, Err: err}
		}
	}
	return with, nil
}

// CatalogOptions reads the flags for images of catalogs and indexes, including serve caches and the reuse of earlier
// layers.
func (o *Image) CatalogOptions(ctx context.Context, p *Session) (build.Options, error) {
	with, err := o.BuildOptions(ctx, p)
	if err == nil {
		err = o.SetCaches(p, &with)
	}
	if err == nil {
		with.Cache, err = o.Known(ctx, p)
	}
	return with, err
}

// PreviousOptions reads --previous and --trust-previous. An image that is pushed can reuse layers of its source image.
func (o *Image) PreviousOptions() (indeximage.Previous, error) {
	p := indeximage.Previous{Name: o.Previous, Trusted: o.TrustPrevious, FromSource: o.pushes()}
	if p.Trusted && p.Name == "" {
		return p, cmdline.Usagef("--trust-previous needs --previous")
	}
	return p, nil
}

// IndexSpec reads the flags about base, form and layers for commands that build images of other catalogs.
func (o *Image) IndexSpec(ctx context.Context, p *Session) (_ *indeximage.Spec, err error) {
	s := &indeximage.Spec{Server: o.ServerName, Embedded: &p.Embedded, Registry: o.Access(p).Registry,
		Program: version.Program(), Log: p.Log}
	if s.Build, err = o.CatalogOptions(ctx, p); err != nil {
		return nil, err
	}
	if len(o.Platforms.Value()) > 0 {
		if s.Platforms, err = o.WrittenPlatforms(); err != nil {
			return nil, err
		}
	}
	if s.Server == build.ServerBase && s.Build.Base == nil {
		return nil, cmdline.Usagef("--server base requires --binary-image")
	}
	if s.Previous, err = o.PreviousOptions(); err != nil {
		return nil, err
	}
	s.Images, err = p.Client(ctx, &o.Images)
	return s, err
}

// SetServer reads --server and --platform for commands whose images get this program's server by default.
func (o *Image) SetServer(p *Session, with *build.Options) error {
	of, err := o.WrittenPlatforms()
	if err != nil {
		return err
	}
	with.Platform = of[0]
	return with.SetServer(cmp.Or(o.ServerName, build.ServerEmbedded), of, &p.Embedded)
}

// WrittenPlatforms reads [Images.PlatformsFlag]; the default is Linux on this machine's architecture.
func (o *Images) WrittenPlatforms() ([]v1.Platform, error) {
	list, err := cmdline.List(o.Platforms.Value())
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return []v1.Platform{{OS: "linux", Architecture: runtime.GOARCH}}, nil
	}
	var out []v1.Platform
	for _, text := range list {
		p, err := ParsePlatform(text)
		if err != nil {
			return nil, err
		}
		out = platform.AppendNew(out, p) // of a platform that is named twice, the index has one image
	}
	return out, nil
}

// architectures are those of Go for Linux, which images have, too.
var architectures = []string{"386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64",
	"ppc64le", "riscv64", "s390x"}

func ParsePlatform(text string) (v1.Platform, error) {
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
