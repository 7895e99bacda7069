package option

import (
	"context"
	"slices"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/indeximage"
	"github.com/operator-bindery/bindery/cmd/internal/inventory"
	"github.com/operator-bindery/bindery/cmd/internal/list"
	"github.com/operator-bindery/bindery/edit/change"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/images/blobcache"
	"github.com/operator-bindery/bindery/images/registries"
	"github.com/operator-bindery/bindery/images/signature"
	"github.com/operator-bindery/bindery/images/transport"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
)

// What follows is for commands whose flags are not bound to options yet: it reads the options out of the command line.

// from sets the values that flags are bound to, as far as the command has these flags.
func from(p *Session, c *cli.Context, flags []cli.Flag) {
	p.Command = c
	for _, f := range flags {
		value := c.Value(f.Names()[0])
		switch f := f.(type) {
		case *cli.StringFlag:
			if v, ok := value.(string); ok {
				*f.Destination = v
			}
		case *cli.BoolFlag:
			if v, ok := value.(bool); ok {
				*f.Destination = v
			}
		case *cli.IntFlag:
			if v, ok := value.(int); ok {
				*f.Destination = v
			}
		case *cli.DurationFlag:
			*f.Destination = c.Duration(f.Name)
		case *cli.StringSliceFlag:
			if v, ok := value.(cli.StringSlice); ok {
				*f.Destination = *cli.NewStringSlice(v.Value()...)
			}
		}
	}
}

func imagesFrom(p *Session, c *cli.Context) *Images {
	o := &Images{}
	from(p, c, append(o.Flags(), o.PlatformFlag(), o.PlatformsFlag("", "")))
	return o
}

func readingFrom(p *Session, c *cli.Context) *Reading {
	o := &Reading{Images: *imagesFrom(p, c)}
	from(p, c, []cli.Flag{JobsFlag(&o.Jobs, ""), o.CompatFlag(), o.LevelFlag(""), o.AllowEmptyFlag("")})
	return o
}

func ImageFrom(p *Session, c *cli.Context) *Image {
	o := &Image{Images: *imagesFrom(p, c)}
	base := o.Base.Flags("")
	from(p, c, append(o.Destination.Flags(), o.Form.Flags("")...))
	from(p, c, append(o.Layers.Flags(""), o.Result.Flags()...))
	from(p, c, append(o.Supply.Flags(), JobsFlag(&o.Jobs, ""), o.DryRunFlag(), base[0], base[1]))
	if name := c.String("base"); name != "" {
		o.BaseImage = name
	}
	return o
}

func bundlesFrom(p *Session, c *cli.Context) *Bundles {
	return &Bundles{Images: *imagesFrom(p, c), Jobs: c.Int("jobs"), ResolveDigests: c.Bool("resolve-digests"),
		ImageTemplate: c.String("image-ref-template")}
}

func editedFrom(c *cli.Context) *Edited {
	return &Edited{Lossy: c.Bool("lossy"), KeepGoing: c.Bool("keep-going"), OutputFormat: c.String("output-format")}
}

func ImageFlags() []cli.Flag                     { return new(Images).Flags() }
func RegistryFlags() []cli.Flag                  { return new(Registry).Flags() }
func WriteFlags() []cli.Flag                     { return new(Registry).AccessFlags() }
func PlatformFlag() cli.Flag                     { return new(Images).PlatformFlag() }
func PlatformsFlag(group, other string) cli.Flag { return new(Images).PlatformsFlag(group, other) }
func ReadFlags() []cli.Flag                      { return new(Reading).Flags() }
func DestinationFlags() []cli.Flag               { return new(Destination).Flags() }
func SignFlags() []cli.Flag                      { return new(Signing).Flags() }
func SignatureFlags() []cli.Flag                 { return new(Signing).FormFlags() }
func KeyFlags(name, group string) []cli.Flag     { return new(Keys).Flags(name, group) }
func FormFlags(group string) []cli.Flag          { return new(Form).Flags(group) }
func LayerFlags(group string) []cli.Flag         { return new(Layers).Flags(group) }
func ServeCacheFlag(group string) cli.Flag       { return new(Layers).CacheFlag(group) }
func MaxLayersFlag(group string) cli.Flag        { return new(Layers).MaxFlag(group) }
func BinaryImageFlags(group string) []cli.Flag   { return new(Base).Flags(group) }
func DryRunFlag() cli.Flag                       { return new(Image).DryRunFlag() }
func NoCacheFlag() cli.Flag                      { return new(Images).NoCacheFlag() }
func CacheSizeFlag() cli.Flag                    { return new(Images).CacheSizeFlag() }
func LegacyFlag() cli.Flag                       { return new(Supply).LegacyFlag() }
func AllowEmptyFlag(group string) cli.Flag       { return new(Reading).AllowEmptyFlag(group) }
func AnswerFlags() []cli.Flag                    { return new(Answer).Flags() }
func ResultFlags() []cli.Flag {
	return append(new(Result).Flags(), new(Supply).Flags()...)
}

// WithoutPolicy leaves out the flags about the policy, for commands that use no content of an image.
func WithoutPolicy(flags []cli.Flag) []cli.Flag {
	return slices.DeleteFunc(flags, func(f cli.Flag) bool {
		return slices.Contains([]string{"policy", "registries-d", "require-signed", "trusted-key"}, f.Names()[0])
	})
}

func (p *Session) Client(c *cli.Context) (*images.Client, error) {
	return imagesFrom(p, c).Client(c.Context, p)
}

func (p *Session) ClientOptions(c *cli.Context) (images.ClientOptions, error) {
	return imagesFrom(p, c).ClientOptions(c.Context, p)
}

func ImageLimits(p *Session, c *cli.Context) (images.Limits, error) { return imagesFrom(p, c).Limits() }

func RegistryOptions(p *Session, c *cli.Context) registries.Config { return imagesFrom(p, c).Config(p) }

func Platforms(p *Session, c *cli.Context) ([]v1.Platform, error) {
	return imagesFrom(p, c).WrittenPlatforms()
}

func (p *Session) Survey(c *cli.Context, ref string) (*images.Survey, error) {
	return imagesFrom(p, c).Survey(c.Context, p, ref)
}

func (p *Session) InventoryOptions(c *cli.Context) (inventory.Options, error) {
	return imagesFrom(p, c).InventoryOptions(c.Int("jobs"))
}

func (p *Session) OpenCache(c *cli.Context, dir string) (*blobcache.Cache, error) {
	return imagesFrom(p, c).OpenCache(p, dir)
}

func (p *Session) Known(c *cli.Context) (*build.Cache, error) { return imagesFrom(p, c).Known(p) }

func (p *Session) RenderOptions(c *cli.Context) (render.Options, error) {
	return readingFrom(p, c).Options(c.Context, p, c.Args().Slice()...)
}

func (p *Session) Compat(c *cli.Context) (sqlite.Compat, error) { return readingFrom(p, c).Compat(p) }

func (p *Session) ListingOf(c *cli.Context, ref string, load ListLoader, packages ...string) (*list.Listing, error) {
	return readingFrom(p, c).ListingOf(c.Context, p, ref, load, packages...)
}

func (p *Session) AllowsEmpty(c *cli.Context) (bool, error) { return readingFrom(p, c).AllowsEmpty(p) }

func (p *Session) CheckEmpty(c *cli.Context, catalog string, packages int) error {
	return readingFrom(p, c).CheckEmpty(p, catalog, packages)
}

func (p *Session) CatalogInput(c *cli.Context, known *build.Cache) (build.CatalogInput, error) {
	o := readingFrom(p, c)
	return o.Input(c.Context, p, &o.Images, o.Jobs, c.Args().First(), known)
}

func (p *Session) BundleOptions(c *cli.Context) (render.Options, error) {
	return bundlesFrom(p, c).Options(c.Context, p)
}

func OutputKind(c *cli.Context, otherwise change.Kind) (change.Kind, error) {
	return editedFrom(c).OutputKind(otherwise)
}

func (p *Session) OpenIndex(c *cli.Context, name string, begun change.Kind) (*indeximage.Index, error) {
	return editedFrom(c).OpenIndex(c.Context, p, bundlesFrom(p, c), name, begun)
}

func ReadTargetOf(p *Session, c *cli.Context, outputs []string) (Target, error) {
	return ImageFrom(p, c).TargetOf(outputs)
}

func (p *Session) BuildOptions(c *cli.Context) (build.Options, error) {
	return ImageFrom(p, c).BuildOptions(c.Context, p)
}

func (p *Session) CatalogOptions(c *cli.Context) (build.Options, error) {
	return ImageFrom(p, c).CatalogOptions(c.Context, p)
}

func PreviousOptions(p *Session, c *cli.Context) (indeximage.Previous, error) {
	return ImageFrom(p, c).PreviousOptions()
}

func (p *Session) ImageSpec(c *cli.Context) (*indeximage.Spec, error) {
	return ImageFrom(p, c).IndexSpec(c.Context, p)
}

func (p *Session) SetServer(c *cli.Context, o *build.Options) error {
	return ImageFrom(p, c).SetServer(p, o)
}

func ServeCaches(p *Session, c *cli.Context) ([]build.ServeCache, error) {
	return ImageFrom(p, c).ServeCaches()
}

func (p *Session) SetCaches(c *cli.Context, o *build.Options) error {
	return ImageFrom(p, c).SetCaches(p, o)
}

func (p *Session) ReportBase(c *cli.Context, image *build.Image) {
	ImageFrom(p, c).Base.Report(p, image)
}

func (p *Session) PrintPlan(c *cli.Context, o build.Options, plan func(build.Options) (*build.Planned, error)) error {
	return ImageFrom(p, c).PrintPlan(c.Context, p, c.Args().First(), o, plan)
}

func (p *Session) Planned(c *cli.Context, in string, o build.Options, plan func(build.Options) (any, error)) (bool, error) {
	return ImageFrom(p, c).Planned(c.Context, p, in, o, plan)
}

func CheckResultFiles(p *Session, c *cli.Context, catalogs ...string) error {
	return ImageFrom(p, c).CheckFiles(catalogs...)
}

func (p *Session) CopyOptions(c *cli.Context) images.CopyOptions {
	return ImageFrom(p, c).CopyOptions(p)
}

func (p *Session) CheckPush(ctx context.Context, dests []transport.Destination, c *cli.Context) (*images.PushCheck, error) {
	return ImageFrom(p, c).CheckPush(ctx, p, dests)
}

func (p *Session) CopyImage(ctx context.Context, image *build.Image, dests []transport.Destination, c *cli.Context,
	check *images.PushCheck) ([]images.Result, error) {
	return ImageFrom(p, c).CopyImage(ctx, p, image, dests, check)
}

func (p *Session) Report(c *cli.Context, t Target, image *build.Image, results []images.Result) error {
	return ImageFrom(p, c).Report(c.Context, p, t, image, results)
}

func (p *Session) MakeImage(c *cli.Context, in string, o build.Options,
	assemble func(build.Options) (*build.Image, error), account ...func() error) error {
	command := c.Context
	defer func() { c.Context = command }()
	return ImageFrom(p, c).Make(c.Context, p, in, o, func(beside context.Context, o build.Options) (*build.Image, error) {
		c.Context = beside
		return assemble(o)
	}, account...)
}

func (p *Session) PrepareSigning(c *cli.Context, t Target) error {
	return ImageFrom(p, c).Signing.Prepare(c.Context, p, t)
}

func SignOptions(p *Session, c *cli.Context) (signature.SignOptions, error) {
	return ImageFrom(p, c).Signing.Options()
}

func (p *Session) SigningKeys(c *cli.Context, flag string) (signature.Keys, error) {
	o := ImageFrom(p, c)
	o.Files = *cli.NewStringSlice(c.StringSlice(flag)...)
	return o.Open(c.Context, p, flag)
}

func (p *Session) Passphrase(c *cli.Context, twice bool) ([]byte, error) {
	return ImageFrom(p, c).Passphrase(c.Context, p, twice)
}

func (p *Session) PrepareSupplies(c *cli.Context, t Target, in string) error {
	return ImageFrom(p, c).PrepareSupplies(c.Context, p, t, in)
}

func WithOutputHint(p *Session, c *cli.Context, err error) error {
	return ImageFrom(p, c).WithOutputHint(err)
}

func CheckAnswer(c *cli.Context) (bool, error) { return (&Answer{Output: c.String("output")}).AsJSON() }

func PolicyFlag(p *Session, c *cli.Context) (string, error) { return imagesFrom(p, c).PolicyFile(p) }
