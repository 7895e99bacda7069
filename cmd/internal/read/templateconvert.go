package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/render/template"
)

// TemplateConvertCommand returns the command under one of its names.
func TemplateConvertCommand(p *option.Session, name string) *cli.Command {
	o := &templateOptions{}
	return &cli.Command{
		Name:      lastWord(name),
		Usage:     "convert a catalog to a template",
		ArgsUsage: "basic|substitutes [FILE|DIR]",
		Description: `A basic template has an image in place of each bundle; rendering it restores the
bundles. A substitutes template has the whole catalog and an empty list of substitutions. FILE is - or absent
for standard input. A catalog that a template cannot represent, such as one with bundles without an image, is
an error.` +
			program.Examples("bindery "+name+" basic catalog", "bindery "+name+" substitutes catalog -o yaml"),
		Flags: []cli.Flag{
			program.CatalogFormatFlag(&o.output),
			o.CompatFlag(""),
		},
		Action: program.Between(1, 2, p.Action(func(ctx context.Context, args []string) error {
			return convertTemplate(ctx, p, o, args)
		})),
	}
}

func convertTemplate(ctx context.Context, p *option.Session, o *templateOptions, args []string) error {
	format, err := program.ParseCatalogFormat(o.output)
	if err != nil {
		return err
	}
	compat, err := o.Compat(p)
	if err != nil {
		return err
	}
	typ, err := template.ParseType(args[0])
	if err != nil || typ == template.Semver {
		return cmdline.Usagef("invalid template type %q, must be one of: [basic substitutes]", args[0])
	}
	file := "-"
	if len(args) == 2 {
		file = args[1]
	}
	catalog, err := loadCatalog(p, ctx, file)
	if errors.Is(err, fs.ErrNotExist) {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: file, Err: err,
			Hint: fmt.Sprintf(
				"the argument is a file or a directory; for an image run: bindery render REF | bindery template "+
					"convert %s", args[0])}
	}
	if err != nil {
		return p.OpmMessage(err)
	}
	return p.Spooled(ctx, func(w io.Writer) error {
		if err := (template.ConvertOptions{Type: typ, Format: format, Warn: p.WarnAt}).Convert(w, catalog); err != nil {
			if errors.Is(err, declcfg.ErrLimit) {
				return &cmdline.Error{Class: cmdline.ClassLimit, Object: file, Err: fmt.Errorf("convert %q: %w", file, err)}
			}
			return templateError(p, err)
		}
		if compat != "" && format == declcfg.FormatYAML {
			_, err := io.WriteString(w, "\n")
			return err
		}
		return nil
	})
}

// loadCatalog loads a catalog from a file, a directory or standard input.
func loadCatalog(p *option.Session, ctx context.Context, file string) (_ *declcfg.Catalog, err error) {
	o := declcfg.LoadOptions{Warn: p.WarnAt}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		root, err := declcfg.OpenDir(file)
		if err != nil {
			return nil, err
		}
		o.Dir = file
		return declcfg.Load(ctx, root, o)
	}
	in, name, err := p.OpenInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	return declcfg.Read(ctx, in, name, o)
}
