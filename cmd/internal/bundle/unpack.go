package bundle

import (
	"cmp"
	"context"
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

// unpackOptions are the flags of "bundle unpack".
type unpackOptions struct {
	option.Images
	to, rootCA                                 string
	skipValidation, bundleOnly, skipTLS, debug bool
}

func bundleUnpackCommand(p *option.Session) *cli.Command {
	o := &unpackOptions{}
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
			&cli.StringFlag{Name: "to", Aliases: []string{"out", "o"}, Value: "./", Usage: "`DIR` to write to",
				Destination: &o.to},
			&cli.BoolFlag{Name: "skip-validation", Aliases: []string{"v"}, Destination: &o.skipValidation,
				Usage: "write the bundle even if it is invalid"},
			&cli.BoolFlag{Name: "bundle-only", Destination: &o.bundleOnly, Usage: "write only the manifests and metadata of the image"},
			o.PlatformFlag(),
			&cli.StringFlag{Name: "root-ca", Aliases: []string{"c"}, Usage: "alias of --ca-file", Hidden: true,
				Destination: &o.rootCA},
			&cli.BoolFlag{Name: "skip-tls", Aliases: []string{"s"}, Usage: "alias of --use-http", Hidden: true,
				Destination: &o.skipTLS},
			&cli.BoolFlag{Name: "debug", Aliases: []string{"d"}, Usage: "alias of --log-level debug", Hidden: true,
				Destination: &o.debug},
		}, o.Images.Flags()...),
		Action: p.Action(func(ctx context.Context, args []string) error { return unpack(ctx, p, o, args) }),
	}
}

func unpack(ctx context.Context, p *option.Session, o *unpackOptions, args []string) (err error) {
	if len(args) != 1 {
		e := cmdline.Usagef("accepts 1 arg(s), received %d", len(args))
		if len(args) > 1 {
			e.Hint = "--to DIR names the directory to write to"
		}
		return e
	}
	if o.debug {
		p.Log = p.NewLogger(p.Stderr, p.LogFormat(p.Command.String("log-format")), slog.LevelDebug)
	}
	if o.rootCA != "" && !p.Given("ca-file") {
		o.Given.Registry.CAFile = o.rootCA
	}
	p.PlainHTTP = p.PlainHTTP || o.skipTLS
	ref, out := args[0], o.to
	if out == "" {
		return cmdline.Usagef("invalid --to value %q, expected a directory", out)
	}
	limits, err := o.Limits()
	if err != nil {
		return err
	}
	limits.Uncompressed = cmp.Or(limits.Uncompressed, render.MaxBundleImage)
	if err := imageName(ref, "the argument is an image, as REGISTRY/REPOSITORY:TAG or oci:DIR:TAG"); err != nil {
		return err
	}
	client, err := p.Client(ctx, &o.Images)
	if err != nil {
		return err
	}
	image, err := client.Image(ctx, ref, v1.Platform{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, image.Close()) }()
	labels := image.Config.Config.Labels
	if !o.skipValidation {
		if err := notBundle(ref, labels); err != nil {
			return err
		}
	}
	wanted := []string{"."}
	if o.bundleOnly {
		wanted = bundle.Paths(labels)
	}
	tree, err := image.Extract(ctx, wanted, images.ExtractOptions{Limits: limits})
	if err != nil {
		return unpackError(o.bundleOnly, ref, err)
	}
	defer func() { err = errors.Join(err, tree.Close()) }()
	if !o.skipValidation {
		plain := labels[bundle.AnnotationMediaType] == string(bundle.PlainV0)
		if err := validBundle(p, ctx, ref, tree,
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
	if err := atomicfs.WriteTree(ctx, out, tree); err != nil {
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
func unpackError(bundleOnly bool, ref string, err error) error {
	err = fmt.Errorf("%q: %w", ref, err)
	if !errors.Is(err, images.ErrInvalid) || bundleOnly {
		return err
	}
	return &cmdline.Error{Class: cmdline.ClassInput, Object: ref, Err: err,
		Hint: "--bundle-only reads only manifests and metadata"}
}
