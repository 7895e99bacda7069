package bundle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/bundle/generate"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	containerfilecmd "github.com/operator-bindery/bindery/cmd/internal/containerfile"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// buildOptions are the flags of "build bundle".
type buildOptions struct {
	option.Image
	metadata
	containerfilecmd.Inputs
	Settings
	dir, outputDir, builder, containerfile, bundleFormat string
	plain, skipValidation, overwrite                     bool
}

// BuildBundleCommand returns "build bundle", and "bundle build", which is opm's name for it.
func BuildBundleCommand(p *option.Session, path string) *cli.Command {
	words := strings.Fields(path)
	o := &buildOptions{}
	flags := o.Destination.Flags()
	flags = append(flags,
		&cli.StringFlag{Name: "directory", Aliases: []string{"d"}, Destination: &o.dir,
			Usage: "`DIR` of the bundle or of its manifests, as the argument", Category: "content"})
	flags = append(append(append(flags, o.containerfileFlags()...), o.metadata.flags("what")...),
		&cli.BoolFlag{Name: "plain", Destination: &o.plain,
			Usage:    "build a plain+v0 bundle: any Kubernetes objects, no package or channels needed",
			Category: "content"},
		&cli.BoolFlag{Name: "skip-validation", Destination: &o.skipValidation, Usage: "build the bundle whatever is wrong with it",
			Category: "content"},
		&cli.BoolFlag{Name: "overwrite", Aliases: []string{"o"}, Destination: &o.overwrite,
			Usage: "replace annotations.yaml, and write it and bundle.Dockerfile to disk", Category: "content"},
		&cli.StringFlag{Name: "output-dir", Aliases: []string{"u"}, Hidden: !p.Opm, Destination: &o.outputDir,
			Usage: "`DIR` to write a copy of the manifests and the metadata to as well", Category: "content"},
		&cli.StringFlag{Name: "base", Aliases: []string{"base-image", "binary-image"}, Value: "scratch",
			Destination: &o.BaseImage,
			Usage:       "`IMAGE` below the bundle", Category: "content"},
		&cli.StringFlag{Name: "platform", Value: "linux/amd64", Destination: &o.Platform, Usage: "`OS/ARCH` that the image's configuration names",
			Category: "content"},
		&cli.StringFlag{Name: "image-builder", Aliases: []string{"b"}, Destination: &o.builder,
			Usage: "accepted for opm's sake: no builder is needed", Category: "content"},
		o.DryRunFlag(), o.NoCacheFlag(), o.CacheSizeFlag(),
	)
	flags = append(append(flags, o.Form.Flags("what")...), o.formatFlags()...)
	return &cli.Command{
		Name:      words[len(words)-1],
		Usage:     "build a bundle image from a bundle directory",
		ArgsUsage: "DIR",
		Description: `DIR contains the directories manifests and metadata, or it is the manifests directory
beside metadata. If metadata/annotations.yaml is missing, the image gets one from --package, --channels and
--default, or from package.yaml in the parent directory. The bundle is validated and written to the
destinations of --push, --load and --to; without them to the OCI layout NAME.oci in the working directory.
The build is reproducible. Standard output lists the destinations, one per line, and last the image's name
with its digest.

With --bundle-format plain the image has the manifests that "bundle manifests" renders, for one namespace and
one kind of cluster. OLM v1 does not install plain+v0 bundles today; other tools may.` +
			program.Examples("bindery "+path+" bundle -t registry.example.com/acme/etcd:v0.9.4",
				"bindery "+path+
					" bundle/manifests -t example.com/acme/etcd:v1 -p etcd -c singlenamespace-alpha --to "+
					"docker-archive:etcd.tar",
				"bindery "+path+" bundle -t registry.example.com/acme/etcd:v1 --push --format docker --dry-run",
				"bindery "+path+" bundle --containerfile bundle.Dockerfile -t example.com/acme/etcd:v1 --dry-run",
				"bindery "+path+" bundle --bundle-format plain --watch-namespace etcd -t example.com/acme/etcd:v1 --dry-run"),
		Flags:  program.Flags(flags, o.Result.Flags(), o.Supply.Flags(), o.Registry.Flags()),
		Action: p.Action(func(ctx context.Context, args []string) error { return buildBundle(ctx, p, o, args) }),
	}
}

func buildBundle(ctx context.Context, p *option.Session, o *buildOptions, args []string) (err error) {
	if plain, err := o.checkFormat(p); err != nil || plain {
		if err == nil {
			err = buildPlainBundle(ctx, p, o, args)
		}
		return err
	}
	if o.containerfile != "" {
		return buildBundleContainerfile(ctx, p, o, args)
	}
	dir, err := argumentOr(args, "directory", o.dir)
	if err != nil {
		return err
	}
	switch builder := o.builder; {
	case builder == "":
	case !slices.Contains([]string{"docker", "podman", "buildah"}, builder):
		return cmdline.Usagef("%s is not supported image builder", builder)
	case !o.Push && !o.Load && !p.Given("to") && !o.DryRun:
		p.Log.Warn(
			fmt.Sprintf(
				"%s is not used: the image is written to a layout in the working directory; --push writes it to the "+
					"registry and --load to podman's storage", builder))
	}
	with, err := o.BuildOptions(ctx, p)
	if err != nil {
		return err
	}
	if with.Platform, err = option.ParsePlatform(o.Platform); err != nil {
		return err
	}
	source, err := generate.OpenSource(generate.SourceOptions{
		Dir: dir, Metadata: o.Metadata, Plain: o.plain, Overwrite: o.overwrite,
		Info: func(message string) { p.Log.Info(message) },
	})
	if err != nil {
		return bundleSourceError(err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	out, within, err := o.Begin(ctx, p, dir, &with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(ctx)) }()
	image, err := o.assemble(within, p, dir, source, with)
	return out.Finish(ctx, image, err)
}

// assemble validates and assembles the bundle.
func (o *buildOptions) assemble(ctx context.Context, p *option.Session, dir string, source *generate.Source, with build.Options) (*build.Image, error) {
	if !o.skipValidation {
		// opm does not validate the bundles that it builds.
		v := validation{plain: o.plain, strict: !p.Opm}
		if err := validBundle(p, ctx, dir, source.FS, v); err != nil {
			return nil, err
		}
	}
	if err := with.Ready(); err != nil {
		return nil, err
	}
	if err := o.writeMetadata(ctx, p, source); err != nil {
		return nil, err
	}
	start := time.Now()
	image, err := build.Bundle(ctx, build.BundleInput{
		FS: source.FS, ManifestsDir: source.ManifestsDir, MetadataDir: source.MetadataDir,
		TestsDir: source.TestsDir, Annotations: source.Annotations,
	}, with)
	if err != nil {
		return nil, err
	}
	p.Log.Info(fmt.Sprintf("assembled the bundle in %s, %s, in %s", program.Count(image.Totals.Layers, "layer"),
		cmdline.FormatSize(image.Totals.Size), time.Since(start).Round(time.Millisecond)))
	return image, nil
}

// writeMetadata writes the generated files that the user wants on disk in addition to the image.
func (o *buildOptions) writeMetadata(ctx context.Context, p *option.Session, s *generate.Source) error {
	if !o.overwrite && o.outputDir == "" || o.DryRun {
		return nil
	}
	m := s.Metadata
	if m == (generate.Metadata{}) {
		m = generate.FromAnnotations(s.Annotations)
	}
	_, err := generate.Generate(ctx, generate.Options{
		Dir: s.Manifests, OutputDir: o.outputDir, Metadata: m, BaseImage: o.BaseImage,
		Overwrite: o.overwrite,
		Info:      func(message string) { p.Log.Info(message) },
	})
	return generateError(err)
}

// bundleSourceError adds a hint to an error about finding the parts of a bundle.
func bundleSourceError(err error) error {
	if errors.Is(err, generate.ErrNotInferred) {
		return generateError(err)
	}
	if errors.Is(err, generate.ErrMetadata) {
		return &cmdline.Error{Class: cmdline.ClassInput,
			Hint: "omit --package, --channels and --default to keep the existing annotations, or replace them with " +
				"--overwrite", Err: err}
	}
	return err
}
