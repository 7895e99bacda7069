package build

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/build/compose"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
	"github.com/operator-bindery/bindery/internal/version"
	"github.com/operator-bindery/bindery/supply/publish"
)

// composeOptions are the flags of "build compose".
type composeOptions struct {
	options
	references            cli.StringSlice
	anyPackages, validate bool
}

func buildComposeCommand(p *option.Session) *cli.Command {
	o := &composeOptions{}
	flags := []cli.Flag{
		&cli.StringSliceFlag{Name: "reference", Destination: &o.references,
			Usage: "add the reference `NAME=IMAGE`, or replace that of the same name in FILE", Category: "content"},
		&cli.BoolFlag{Name: "any-packages", Destination: &o.anyPackages, Usage: "use all packages of a reference regardless of its name",
			Category: "content"},
		&cli.BoolFlag{Name: "validate", Destination: &o.validate,
			Usage:    "read and validate all references, and rebuild layers to compare them before stacking",
			Category: "execution"},
		&cli.BoolFlag{Name: "plan", Destination: &o.Plan,
			Usage: "print which references are stacked and which are packed, without building; --metadata-file - " +
				"prints JSON", Category: "execution"},
	}
	return &cli.Command{
		Name:      "compose",
		Usage:     "build a catalog image from other catalog images",
		ArgsUsage: "FILE",
		Description: `FILE names the image and the images it is composed of ("-" is standard input):

  name: community
  repo: registry.example.com/acme/community
  tag: v1
  references:
  - name: etcd                                  # the package
    image: registry.example.com/acme/etcd:v1    # an image of its catalog

Layers of images built by bindery are stacked by digest: they are not downloaded, and are mounted from a
repository of the same registry where possible. Other catalogs are read, validated and packed. The image is
the same as that of "build catalog" for all packages together. -t overrides the name in FILE; other flags are
those of "build catalog".` +
			program.Examples("bindery build compose compose.yaml --push --dry-run",
				"bindery build compose compose.yaml -t registry.example.com/acme/community:v2 --validate "+
					"--compression zstd",
				"bindery build compose compose.yaml --plan --reference etcd=oci:catalog.oci:v1"),
		// The references determine how packages are grouped into layers: there is no --previous.
		Flags: slices.DeleteFunc(distinctFlags(flags, o.options.flags(), o.Images.Flags()),
			func(f cli.Flag) bool {
				return f.Names()[0] == "previous"
			}),
		Action: program.Exactly(1, p.Action(func(ctx context.Context, args []string) error {
			return buildCompose(ctx, p, o, args[0])
		})),
	}
}

// distinctFlags joins lists of flags and keeps the first of each name.
func distinctFlags(lists ...[]cli.Flag) []cli.Flag {
	var out []cli.Flag
	seen := map[string]bool{}
	for _, f := range program.Flags(lists...) {
		if name := f.Names()[0]; !seen[name] {
			seen[name] = true
			out = append(out, f)
		}
	}
	return out
}

func buildCompose(ctx context.Context, p *option.Session, o *composeOptions, file string) (err error) {
	config, err := composeConfig(ctx, p, o, file)
	if err != nil {
		return err
	}
	with, err := o.CatalogOptions(ctx, p)
	if err != nil {
		return err
	}
	in := file
	if in == "-" {
		in = ""
	}
	var opened *compose.Images
	defer func() {
		if opened != nil {
			_ = opened.Close() // opened for reading only
		}
	}()
	out, within, err := o.Begin(ctx, p, in, &with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(ctx)) }()
	start := time.Now()
	if opened, err = openReferences(within, p, o, file, config, &with); err != nil {
		return out.Finish(ctx, nil, err)
	}
	input := build.ComposeInput{References: opened.References, AnyPackages: o.anyPackages, OneCompression: p.Given("compression"),
		Verify: o.validate}
	if o.Plan {
		return printComposition(within, p, o, file, with, input)
	}
	debug.FreeOSMemory()
	image, err := build.Compose(within, input, with)
	if err != nil {
		return out.Finish(ctx, nil, composeHint(err))
	}
	if err := o.CheckEmpty(p, file, image.Totals.Packages); err != nil {
		return out.Finish(ctx, nil, errors.Join(err, image.Close()))
	}
	reportComposed(p, image, time.Since(start))
	return out.Finish(ctx, image, nil)
}

// composeConfig reads the configuration and applies the flags that override it.
func composeConfig(ctx context.Context, p *option.Session, o *composeOptions, file string) (*compose.Config, error) {
	in, name, err := p.OpenInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	config, err := compose.Read(in, name)
	if err != nil {
		return nil, err
	}
	replaced, err := cmdline.Pairs("reference", o.references.Value())
	if err != nil {
		return nil, err
	}
	if err := config.Replace(replaced); err != nil {
		return nil, cmdline.Usagef("--reference: %w", err)
	}
	if len(o.Tags.Value()) == 0 && config.Repo != "" {
		image := config.Repo
		if config.Tag != "" {
			image += ":" + config.Tag
		}
		if _, err := publish.CheckName(image); err != nil {
			return nil, compose.Problem{Place: problem.Place{File: name}, Field: "repo, tag", Text: err.Error(),
				Err: fault.ErrInvalid}
		}
		o.Tags = *cli.NewStringSlice(image)
	}
	return config, nil
}

// openReferences opens the images of a composite and finds the servers for the new image.
func openReferences(ctx context.Context, p *option.Session, o *composeOptions, file string, config *compose.Config,
	with *build.Options) (*compose.Images, error) {
	of, err := o.WrittenPlatforms()
	if err != nil {
		return nil, err
	}
	if err := o.SetServer(p, with); err != nil {
		return nil, err
	}
	ro, err := o.Catalogs.Options(ctx, p, &o.Images, o.Jobs, file)
	if err != nil {
		return nil, err
	}
	ro.TempDir = with.Dir
	return compose.Open(ctx, config.References,
		compose.Options{Render: ro, Platforms: of, Cache: with.Cache, Program: version.Program(),
			Locked: o.Lock != ""})
}

// composeHint adds a hint to errors about references with the wrong content.
func composeHint(err error) error {
	if errors.Is(err, build.ErrPackages) {
		return &cmdline.Error{Class: cmdline.ClassInput, Err: err,
			Hint: "a reference must have the name of its only package, and each package one reference; " +
				"--any-packages lifts the first rule"}
	}
	return err
}

// reportComposed reports how the references were used.
func reportComposed(p *option.Session, image *build.Image, took time.Duration) {
	packed := 0
	var reasons []string
	names := map[string][]string{}
	for _, r := range image.Composed {
		if packed += len(r.Packed); len(r.Packed) == 0 {
			continue
		}
		if names[r.Why] == nil {
			reasons = append(reasons, r.Why)
		}
		names[r.Why] = append(names[r.Why], r.Name)
	}
	for _, why := range reasons {
		p.Log.Info(fmt.Sprintf("packed: %s: %s", firstNames(names[why]), why))
	}
	stacked, size := 0, int64(0)
	kinds := map[string]bool{}
	for _, l := range image.Layers {
		if l.From != "" {
			stacked++
			size += l.Size
		}
		if l.Kind == build.LayerPackages {
			kinds[l.MediaType] = true
		}
	}
	if len(kinds) > 1 && stacked > 0 {
		p.Log.Warn("the layers of the references have different compressions; --compression makes them uniform")
	}
	p.Log.Info(fmt.Sprintf("composed %s of %s, %s, of which %d stacked by digest (%s) and %s packed, in %s",
		program.Count(image.Totals.Packages, "package"),
		program.Count(len(image.Composed), "reference"), program.Count(image.Totals.Layers, "layer"), stacked, cmdline.FormatSize(size),
		program.Count(packed, "package"), took.Round(time.Millisecond)))
}

// firstNames formats a list of names that may be long.
func firstNames(names []string) string {
	const most = 5
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// composition is the JSON form of a plan.
type composition struct {
	Composed []build.Composed `json:"composed"`
	Layers   []composedLayer  `json:"layers"`
}

// composedLayer is a layer of packages. Size is that of a reused layer, Content the size of its catalogs.
type composedLayer struct {
	Packages []string `json:"packages"`
	Digest   string   `json:"digest,omitempty"`
	Size     int64    `json:"bytes,omitempty"`
	Content  int64    `json:"content,omitempty"`
	From     string   `json:"from,omitempty"`
}

// printComposition prints which layers would be reused and which packages packed.
func printComposition(ctx context.Context, p *option.Session, o *composeOptions, file string, with build.Options, input build.ComposeInput) error {
	account, ls, err := input.Plan(ctx, with)
	if err != nil {
		return composeHint(err)
	}
	plan := composition{Composed: account, Layers: []composedLayer{}}
	for _, l := range ls {
		plan.Layers = append(plan.Layers,
			composedLayer{append([]string{}, l.Packages...), l.Digest.String(), l.Size, l.Content, l.From})
	}
	if err := o.CheckEmpty(p, file, len(ls)); err != nil {
		return err
	}
	if printed, err := o.WritePlan(p, plan); err != nil || printed {
		return err
	}
	var rows [][]string
	for _, r := range account {
		rows = append(rows, []string{r.Name, strconv.Itoa(len(r.Stacked)), strconv.Itoa(len(r.Packed)), r.Image, r.Why})
	}
	if err := p.PrintTable([]string{"REFERENCE", "STACKED", "PACKED", "IMAGE", "WHY PACKED"}, rows...); err != nil {
		return err
	}
	p.Log.Info(fmt.Sprintf("%s of packages", program.Count(len(ls), "layer")))
	return nil
}
