package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/bundle/generate"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/olmv1/manifestfiles"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

const plainFormat = "plain"

// bundleFormats are the values of --bundle-format.
var bundleFormats = []string{"registry", plainFormat}

// formatFlags choose the format of the bundle in the image, and for what it is rendered.
func (o *buildOptions) formatFlags() []cli.Flag {
	return append([]cli.Flag{&cli.StringFlag{Name: "bundle-format", Value: bundleFormats[0], Category: "content",
		Destination: &o.bundleFormat,
		Usage: "`FORMAT` of the bundle in the image (" + strings.Join(bundleFormats,
			"|") + "); plain: DIR is rendered as OLM v1 does it, to a plain+v0 bundle"}},
		o.Settings.Flags("with --bundle-format plain")...)
}

// checkFormat refuses flags that have no effect on the format, and reports whether it is plain.
func (o *buildOptions) checkFormat(p *option.Session) (plain bool, err error) {
	format := o.bundleFormat
	if !slices.Contains(bundleFormats, format) {
		return false, cmdline.Usagef("invalid --bundle-format value %q, expected (%s)", format,
			strings.Join(bundleFormats, "|"))
	}
	names, why := SettingsNames, "--%s requires --bundle-format plain"
	if plain = format == plainFormat; plain {
		names, why = []string{"package", "channels", "default", "plain", "overwrite", "output-dir", "containerfile"},
			"--%s has no effect with --bundle-format plain"
	}
	for _, name := range names {
		if p.Given(name) {
			return plain, cmdline.Usagef(why, name)
		}
	}
	return plain, nil
}

// buildPlainBundle builds an image of what a bundle renders to.
func buildPlainBundle(ctx context.Context, p *option.Session, o *buildOptions, args []string) (err error) {
	ref, err := argumentOr(args, "directory", o.dir)
	if err != nil {
		return err
	}
	s, err := o.Settings.Read(ctx, p)
	if err != nil {
		return err
	}
	with, err := o.BuildOptions(ctx, p)
	if err != nil {
		return err
	}
	if with.Platform, err = option.ParsePlatform(o.Platform); err != nil {
		return err
	}
	b, err := ReadBundle(ctx, p, &o.Images, ref)
	if err != nil {
		return err
	}
	objects, err := RenderBundle(p, ref, b, s, InstallNamespace(b, &s))
	if err != nil {
		return err
	}
	metadata := generate.Metadata{MediaType: bundle.PlainV0, Package: b.Package()}
	files, err := plainFiles(objects, metadata)
	if err != nil {
		return err
	}
	out, within, err := o.Begin(ctx, p, ref, &with)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close(ctx)) }()
	if !o.skipValidation {
		if err := validBundle(p, within, ref, files, validation{plain: true, strict: true}); err != nil {
			return out.Finish(ctx, nil, err)
		}
	}
	start := time.Now()
	image, err := build.Bundle(within, build.BundleInput{FS: files, ManifestsDir: "manifests",
		MetadataDir: "metadata", Annotations: metadata.Map()}, with)
	if err == nil {
		p.Log.Info(fmt.Sprintf("assembled the plain+v0 bundle in %s, in %s; OLM v1 does not install this format today",
			program.Count(image.Totals.Layers, "layer"), time.Since(start).Round(time.Millisecond)))
	}
	return out.Finish(ctx, image, err)
}

// plainFiles returns the files of a plain+v0 bundle with these objects.
func plainFiles(objects []manifests.Object, m generate.Metadata) (fs.FS, error) {
	split, err := manifestfiles.YAML.Files([]manifests.Phase{{Objects: objects}}, false)
	if err != nil {
		return nil, err
	}
	annotations, err := m.Annotations()
	if err != nil {
		return nil, err
	}
	out := bundlefs.Layout{Dirs: map[string]fs.FS{"manifests": nil, "metadata": nil},
		Files: map[string][]byte{"metadata/annotations.yaml": annotations}}
	for _, f := range split {
		if f.Name != manifestfiles.KustomizationFile {
			out.Files["manifests/"+f.Name] = f.Text
		}
	}
	return out, nil
}
