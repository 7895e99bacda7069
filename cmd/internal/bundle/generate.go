package bundle

import (
	"context"
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle/generate"
	"github.com/operator-bindery/bindery/check/bundlecheck"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// metadata is what the annotations of a bundle say.
type metadata struct{ generate.Metadata }

func (o *metadata) flags(group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "package", Aliases: []string{"p"}, Usage: "`PACKAGE` that the bundle belongs to", Destination: &o.Package,
			Category: group},
		&cli.StringFlag{Name: "channels", Aliases: []string{"c"},
			Usage: "`CHANNELS` that the bundle is in, separated by commas", Category: group, Destination: &o.Channels},
		&cli.StringFlag{Name: "default", Aliases: []string{"e"}, Usage: "default `CHANNEL` of the package", Destination: &o.DefaultChannel,
			Category: group},
	}
}

// generateOptions are the flags of "bundle generate".
type generateOptions struct {
	metadata
	dir, to, baseImage string
	overwrite          bool
}

func bundleGenerateCommand(p *option.Session) *cli.Command {
	o := &generateOptions{}
	flags := []cli.Flag{
		&cli.StringFlag{Name: "directory", Aliases: []string{"d"}, Usage: "`DIR` in place of the argument", Destination: &o.dir},
	}
	flags = append(flags, o.metadata.flags("")...)
	return &cli.Command{
		Name:      "generate",
		Usage:     "generate the annotations and the Dockerfile of a bundle",
		ArgsUsage: "[DIR]",
		Description: `DIR contains the manifests, or it is the bundle's root with them. The annotations are written to
metadata/annotations.yaml beside the manifests, or with --to to that directory together with a copy of
them; bundle.Dockerfile is written to the working directory. Package and channels default to those of
package.yaml in the parent directory of the manifests. An existing file with different content is an error unless --overwrite is set. "build
bundle" needs none of these files.` +
			program.Examples("bindery bundle generate bundle/manifests -p etcd -c stable,beta -e stable --overwrite",
				"bindery bundle generate -d bundle/manifests -p etcd -c alpha --to out"),
		Flags: append(flags,
			&cli.StringFlag{Name: "to", Aliases: []string{"output-dir", "u"}, Destination: &o.to,
				Usage: "copy the manifests and metadata to `DIR`"},
			&cli.StringFlag{Name: "base-image", Value: "scratch", Usage: "base `IMAGE` of the Dockerfile",
				Destination: &o.baseImage},
			&cli.BoolFlag{Name: "overwrite", Usage: "replace existing files", Destination: &o.overwrite},
		),
		Action: p.Action(func(ctx context.Context, args []string) error { return generateFiles(ctx, p, o, args) }),
	}
}

func generateFiles(ctx context.Context, p *option.Session, o *generateOptions, args []string) error {
	dir, err := argumentOr(args, "directory", o.dir)
	if err != nil {
		return err
	}
	var warn func(string)
	if !p.Opm {
		dir, warn = generate.ManifestsDir(dir), func(message string) { p.Log.Warn(message) }
	}
	made, err := generate.Generate(ctx, generate.Options{
		Dir: dir, OutputDir: o.to, Metadata: o.Metadata, BaseImage: o.baseImage,
		// opm overwrites existing files without a flag.
		Overwrite: o.overwrite || p.Opm,
		Info:      func(message string) { p.Log.Info(message) },
		Warn:      warn,
	})
	if err == nil && !p.Opm {
		channels := strings.Split(made.Metadata.Channels, ",")
		if text := bundlecheck.DefaultChannel(made.Metadata.DefaultChannel, channels); text != "" {
			p.Log.Warn(text)
		}
	}
	return generateError(err)
}

// generateError adds a hint to an error of generating metadata.
func generateError(err error) error {
	if errors.Is(err, generate.ErrNotInferred) {
		return &cmdline.Error{Class: cmdline.Classify(err), Hint: "set -p PACKAGE and -c CHANNEL,...", Err: err}
	}
	if errors.Is(err, generate.ErrExists) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Hint: "replace the existing files with --overwrite", Err: err}
	}
	return err
}

// argumentOr returns the argument, or the value of the flag that can replace it.
func argumentOr(args []string, flag, value string) (string, error) {
	switch {
	case len(args) > 1 || len(args) == 1 && value != "":
		return "", cmdline.Usagef("accepts one directory, as the argument or as --%s", flag)
	case value != "":
		return value, nil
	case len(args) == 1 && args[0] != "":
		return args[0], nil
	}
	return "", cmdline.Usagef("required flag(s) %q not set", flag)
}
