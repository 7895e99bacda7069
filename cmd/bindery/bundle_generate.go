package main

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/bundle/generate"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

// metadataFlags say what a bundle's annotations are.
func metadataFlags(group string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "package", Aliases: []string{"p"}, Usage: "`PACKAGE` that the bundle belongs to", Category: group},
		&cli.StringFlag{Name: "channels", Aliases: []string{"c"}, Usage: "`CHANNELS` that the bundle is in, separated by commas", Category: group},
		&cli.StringFlag{Name: "default", Aliases: []string{"e"}, Usage: "default `CHANNEL` of the package", Category: group},
	}
}

// readMetadata reads [metadataFlags].
func readMetadata(c *cli.Context) generate.Metadata {
	return generate.Metadata{Package: c.String("package"), Channels: c.String("channels"), DefaultChannel: c.String("default")}
}

func (p *program) bundleGenerateCommand() *cli.Command {
	flags := []cli.Flag{
		&cli.StringFlag{Name: "directory", Aliases: []string{"d"}, Usage: "`DIR` with the manifests, as the argument"},
	}
	flags = append(flags, metadataFlags("")...)
	return &cli.Command{
		Name:      "generate",
		Usage:     "generate the annotations and the Dockerfile of a bundle",
		ArgsUsage: "[DIR]",
		Description: "DIR has the manifests. The annotations are written to metadata/annotations.yaml beside it, or with --output-dir into\n" +
			"that directory together with a copy of the manifests; bundle.Dockerfile is written to the working directory. Package and\n" +
			"channels that are not given are taken from package.yaml in the directory above DIR. A file that is there with other\n" +
			"content is an error, unless --overwrite says to replace it. \"build bundle\" needs none of these files." +
			examples("bindery bundle generate bundle/manifests -p etcd -c stable,beta -e stable --overwrite",
				"bindery bundle generate -d bundle/manifests -p etcd -c alpha --output-dir out"),
		Flags: append(flags,
			&cli.StringFlag{Name: "output-dir", Aliases: []string{"u"}, Usage: "`DIR` for a copy of the manifests and the metadata"},
			&cli.StringFlag{Name: "base-image", Value: "scratch", Usage: "`IMAGE` that the Dockerfile starts from"},
			&cli.BoolFlag{Name: "overwrite", Usage: "replace files that are there with other content"},
		),
		Action: p.bundleGenerate,
	}
}

func (p *program) bundleGenerate(c *cli.Context) error {
	dir, err := argumentOr(c, "directory")
	if err != nil {
		return err
	}
	_, err = generate.Generate(c.Context, generate.Options{
		Dir: dir, OutputDir: c.String("output-dir"), Metadata: readMetadata(c), BaseImage: c.String("base-image"),
		// opm replaces what is there without being asked.
		Overwrite: c.Bool("overwrite") || p.opm,
		Info:      func(message string) { p.log.Info(message) },
	})
	return generateError(err)
}

// generateError says what helps against an error of generating metadata.
func generateError(err error) error {
	if errors.Is(err, generate.ErrNotInferred) {
		return &cmdline.Error{Class: cmdline.Classify(err), Hint: "-p PACKAGE and -c CHANNEL,... say it", Err: err}
	}
	if errors.Is(err, generate.ErrExists) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Hint: "--overwrite replaces what is there", Err: err}
	}
	return err
}

// argumentOr is the one argument, or the value of the flag that stands for it.
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
