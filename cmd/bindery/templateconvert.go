package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/template"
)

// templateConvertCommand returns the command under one of its names.
func (p *program) templateConvertCommand(name string) *cli.Command {
	return &cli.Command{
		Name:      lastWord(name),
		Usage:     "convert a catalog to a template",
		ArgsUsage: "basic|substitutes [FILE|DIR]",
		Description: `A basic template has an image in place of each bundle; rendering it restores the
bundles. A substitutes template has the whole catalog and an empty list of substitutions. FILE is - or absent
for standard input. A catalog that a template cannot represent, such as one with bundles without an image, is
an error.` +
			examples("bindery "+name+" basic catalog", "bindery "+name+" substitutes catalog -o yaml"),
		Flags: []cli.Flag{
			catalogFormatFlag(),
			compatFlag(),
		},
		Action: between(1, 2, p.templateConvert),
	}
}

func (p *program) templateConvert(c *cli.Context) error {
	format, err := catalogFormat(c)
	if err != nil {
		return err
	}
	compat, err := p.compat(c)
	if err != nil {
		return err
	}
	typ, err := template.ParseType(c.Args().First())
	if err != nil || typ == template.Semver {
		return cmdline.Usagef("invalid template type %q, must be one of: [basic substitutes]", c.Args().First())
	}
	file := "-"
	if c.NArg() == 2 {
		file = c.Args().Get(1)
	}
	catalog, err := p.loadCatalog(c.Context, file)
	if errors.Is(err, fs.ErrNotExist) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: file, Err: err,
			Hint: fmt.Sprintf(
				"the argument is a file or a directory; for an image run: bindery render REF | bindery template "+
					"convert %s", c.Args().First())}
	}
	if err != nil {
		return p.opmMessage(err)
	}
	return p.spooled(c.Context, func(w io.Writer) error {
		if err := (template.ConvertOptions{Type: typ, Format: format, Warn: p.warnAt}).Convert(w, catalog); err != nil {
			if errors.Is(err, declcfg.ErrLimit) {
				return &cmdline.Error{Class: cmdline.ClassLimit, Object: file, Err: fmt.Errorf("convert %q: %w", file, err)}
			}
			return p.templateError(err)
		}
		if compat != "" && format == declcfg.FormatYAML {
			_, err := io.WriteString(w, "\n")
			return err
		}
		return nil
	})
}

// loadCatalog loads a catalog from a file, a directory or standard input.
func (p *program) loadCatalog(ctx context.Context, file string) (_ *declcfg.Catalog, err error) {
	o := declcfg.LoadOptions{Warn: p.warnAt}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		root, err := declcfg.OpenDir(file)
		if err != nil {
			return nil, err
		}
		o.Dir = file
		return declcfg.Load(ctx, root, o)
	}
	in, name, err := p.openInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return declcfg.Read(ctx, in, name, o)
}
