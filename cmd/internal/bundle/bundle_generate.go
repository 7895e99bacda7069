package bundle

import (
	"errors"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle/check"
	"github.com/operator-bindery/bindery/bundle/generate"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

// metadataFlags are the flags for a bundle's annotations.
func metadataFlags(group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "package", Aliases: []string{"p"}, Usage: "`PACKAGE` that the bundle belongs to",
			Category: group},
		&cli.StringFlag{Name: "channels", Aliases: []string{"c"},
			Usage: "`CHANNELS` that the bundle is in, separated by commas", Category: group},
		&cli.StringFlag{Name: "default", Aliases: []string{"e"}, Usage: "default `CHANNEL` of the package",
			Category: group},
	}
}

// readMetadata reads [metadataFlags].
func readMetadata(c *cli.Context) generate.Metadata {
	return generate.Metadata{Package: c.String("package"), Channels: c.String("channels"),
		DefaultChannel: c.String("default")}
}

func bundleGenerateCommand(p *option.Session) *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "directory", Aliases: []string{"d"}, Usage: "`DIR` in place of the argument"},
	}
	flags = append(flags, metadataFlags("")...)
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
			&cli.StringFlag{Name: "to", Aliases: []string{"output-dir", "u"},
				Usage: "copy the manifests and metadata to `DIR`"},
			&cli.StringFlag{Name: "base-image", Value: "scratch", Usage: "base `IMAGE` of the Dockerfile"},
			&cli.BoolFlag{Name: "overwrite", Usage: "replace existing files"},
		),
		Action: func(c *cli.Context) error { return bundleGenerate(p, c) },
	}
}

func bundleGenerate(p *option.Session, c *cli.Context) error {
	dir, err := argumentOr(c, "directory")
	if err != nil {
		return err
	}
	var warn func(string)
	if !p.Opm {
		dir, warn = generate.ManifestsDir(dir), func(message string) { p.Log.Warn(message) }
	}
	made, err := generate.Generate(c.Context, generate.Options{
		Dir: dir, OutputDir: c.String("to"), Metadata: readMetadata(c), BaseImage: c.String("base-image"),
		// opm overwrites existing files without a flag.
		Overwrite: c.Bool("overwrite") || p.Opm,
		Info:      func(message string) { p.Log.Info(message) },
		Warn:      warn,
	})
	if err == nil && !p.Opm {
		channels := strings.Split(made.Metadata.Channels, ",")
		if text := check.DefaultChannel(made.Metadata.DefaultChannel, channels); text != "" {
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
func argumentOr(c *cli.Context, flag string) (string, error) {
	switch value := c.String(flag); {
	case c.NArg() > 1 || c.NArg() == 1 && value != "":
		return "", cmdline.Usagef("accepts one directory, as the argument or as --%s", flag)
	case value != "":
		return value, nil
	case c.NArg() == 1 && c.Args().First() != "":
		return c.Args().First(), nil
	}
	return "", cmdline.Usagef("required flag(s) %q not set", flag)
}
