package bundle

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/images"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/render"
)

func bundleUnpackCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:      "unpack",
		Usage:     "write the files of a bundle image into a directory",
		ArgsUsage: "REF",
		Description: `Writes all files of the image, or with --bundle-only those in its manifests and metadata
directories. The bundle is validated first. Existing files are never replaced. Files get mode 0644; an image
with links or devices is refused.` +
			program.Examples("bindery bundle unpack registry.example.com/acme/etcd:v0.9.4 --to unpacked",
				"bindery bundle unpack oci:etcd.oci:v1 --to unpacked",
				"bindery bundle unpack oci:etcd.oci:v1 --to unpacked --bundle-only --skip-validation"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "to", Aliases: []string{"out", "o"}, Value: "./", Usage: "`DIR` to write to"},
			&cli.BoolFlag{Name: "skip-validation", Aliases: []string{"v"},
				Usage: "write the bundle even if it is invalid"},
			&cli.BoolFlag{Name: "bundle-only", Usage: "write only the manifests and metadata of the image"},
			option.PlatformFlag(),
			&cli.StringFlag{Name: "root-ca", Aliases: []string{"c"}, Usage: "alias of --ca-file", Hidden: true},
			&cli.BoolFlag{Name: "skip-tls", Aliases: []string{"s"}, Usage: "alias of --use-http", Hidden: true},
			&cli.BoolFlag{Name: "debug", Aliases: []string{"d"}, Usage: "alias of --log-level debug", Hidden: true},
		}, option.ImageFlags()...),
		Action: func(c *cli.Context) error { return bundleUnpack(p, c) },
	}
}

func bundleUnpack(p *option.Session, c *cli.Context) (err error) {
	if c.NArg() != 1 {
		e := cmdline.Usagef("accepts 1 arg(s), received %d", c.NArg())
		if c.NArg() > 1 {
			e.Hint = "--to DIR names the directory to write to"
		}
		return e
	}
	if c.Bool("debug") {
		p.Log = p.NewLogger(p.Stderr, p.LogFormat(c.String("log-format")), slog.LevelDebug)
	}
	if ca := c.String("root-ca"); ca != "" && !c.IsSet("ca-file") {
		if err := c.Set("ca-file", ca); err != nil {
			return err
		}
	}
	ref, out := c.Args().First(), c.String("to")
	if out == "" {
		return cmdline.Usagef("invalid --to value %q, expected a directory", out)
	}
	limits, err := option.ImageLimits(p, c)
	if err != nil {
		return err
	}
	limits.Uncompressed = cmp.Or(limits.Uncompressed, render.MaxBundleImage)
	if err := imageName(ref, "the argument is an image, as REGISTRY/REPOSITORY:TAG or oci:DIR:TAG"); err != nil {
		return err
	}
	client, err := p.Client(c)
	if err != nil {
		return err
	}
	image, err := client.Image(c.Context, ref, v1.Platform{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	labels := image.Config.Config.Labels
	if !c.Bool("skip-validation") {
		if err := notBundle(ref, labels); err != nil {
			return err
		}
	}
	wanted := []string{"."}
	if c.Bool("bundle-only") {
		wanted = bundle.Paths(labels)
	}
	tree, err := image.Extract(c.Context, wanted, images.ExtractOptions{Limits: limits})
	if err != nil {
		return unpackError(c, ref, err)
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	if !c.Bool("skip-validation") {
		plain := labels[bundle.AnnotationMediaType] == string(bundle.PlainV0)
		if err := validBundle(p, c.Context, ref, tree,
			validation{labels: labels, plain: plain, strict: true}); err != nil {
			return err
		}
	}
	files := 0
	if err := fs.WalkDir(tree, ".", func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files++
		}
		return err
	}); err != nil {
		return err
	}
	if err := atomicfs.WriteTree(c.Context, out, tree); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return &cmdline.Error{Class: cmdline.ClassLocal, Object: out, Err: err,
				Hint: "nothing was written; name another directory with -o DIR"}
		}
		return err
	}
	p.Log.Info(fmt.Sprintf("wrote %s of %s to %s", program.Count(files, "file"), image.Reference(), out))
	return nil
}

// unpackError adds a hint to the error about an image with more files than a bundle.
func unpackError(c *cli.Context, ref string, err error) error {
	err = fmt.Errorf("%q: %w", ref, err)
	if !errors.Is(err, images.ErrInvalid) || c.Bool("bundle-only") {
		return err
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err,
		Hint: "--bundle-only reads only manifests and metadata"}
}
