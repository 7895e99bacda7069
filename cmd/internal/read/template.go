package read

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/render/template"
)

func TemplateCommand(p *option.Session) *cli.Command {
	return p.GroupCommand("template", "render templates to catalogs, and convert catalogs to templates",
		TemplateRenderCommand(p, "template render"),
		TemplateConvertCommand(p, "template convert"),
	)
}

// TemplateRenderCommand returns the command under one of its names, such as "alpha render-template".
func TemplateRenderCommand(p *option.Session, name string) *cli.Command {
	return &cli.Command{
		Name:      lastWord(name),
		Usage:     "render a template to a catalog",
		ArgsUsage: "[TYPE] [FILE]",
		Description: `A template is one YAML or JSON document of type basic (a catalog with images in place of
bundles), semver (images, from whose versions channels are generated) or substitutes (a catalog with
substitutions of bundles). The schema field determines the type; TYPE requires one. FILE is - or absent for
standard input. Every image is rendered once. All problems of the template are reported together with their
lines; the output is complete or empty.` +
			program.Examples("bindery "+name+" template.yaml", "bindery "+name+" template.yaml --to rendered", "bindery "+name+" semver semver.yaml -o yaml",
				"bindery "+name+" basic template.yaml -o yaml --migrate-level bundle-object-to-csv-metadata"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "json",
				Usage: "output `FORMAT` (json|yaml), or a drawing of the channels (mermaid)"},
			&cli.StringFlag{Name: "to", Usage: "write the catalog to `DIR`, which must be absent or empty"},
			program.MigrateLevelFlag(""),
			&cli.BoolFlag{Name: "resolve-digests", Usage: "replace the tags of bundle images by digests"},
			program.CompatFlag(),
		}, option.ReadFlags()...),
		Action: program.Between(0, 2, func(c *cli.Context) error { return templateRender(p, c) }),
	}
}

// lastWord returns the last name of a full command name.
func lastWord(name string) string { return name[strings.LastIndexByte(name, ' ')+1:] }

func templateRender(p *option.Session, c *cli.Context) error {
	write, err := templateWriter(p, c)
	if err != nil {
		return err
	}
	o, err := p.RenderOptions(c)
	if err != nil {
		return err
	}
	typ, file, err := templateArgs(c)
	if err != nil {
		return err
	}
	compat := o.Compat != ""
	tmpl, err := parseTemplate(p, c.Context, file, template.ParseOptions{Type: typ, Compat: compat, Warn: p.WarnAt})
	if errors.Is(err, fs.ErrNotExist) && c.NArg() == 1 && !p.Opm {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: file, Err: err,
			Hint: fmt.Sprintf(
				"the argument is a file with a template, or a type to read from standard input: one of %v",
				template.Types())}
	}
	if err != nil {
		return templateError(p, err)
	}
	level := o.Level
	o.Level = edit.LevelNone // the template needs the manifests first
	o.Allow = []render.Kind{render.BundleImage}
	o.ResolveDigests = c.Bool("resolve-digests")
	catalog, err := tmpl.Render(c.Context, template.RenderOptions{
		Render: func(ctx context.Context, image string) (*declcfg.Catalog, error) {
			return renderBundle(ctx, image, o)
		},
		Jobs: o.Jobs, Level: level, Compat: compat, Warn: p.WarnAt,
	})
	if err != nil {
		return templateError(p, err)
	}
	if dir := c.String("to"); dir != "" {
		return writeCatalog(p, c, dir, catalog)
	}
	return p.Spooled(c.Context, func(w io.Writer) error { return write(w, catalog) })
}

// writeCatalog writes a catalog to the directory of --to.
func writeCatalog(p *option.Session, c *cli.Context, dir string, catalog *declcfg.Catalog) error {
	format, err := declcfg.ParseFormat(c.String("output"))
	if err != nil {
		return cmdline.Usagef("invalid --output value %q, expected (json|yaml) with --to", c.String("output"))
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	if err := declcfg.WriteFS(c.Context, dir, format, catalog.Blobs()); err != nil {
		return err
	}
	p.Log.Info(fmt.Sprintf("wrote %s to %q", program.Count(len(catalog.Packages), "package"), dir))
	return nil
}

// templateArgs reads [TYPE] [FILE]. A single argument is a type if it is the name of one.
func templateArgs(c *cli.Context) (template.Type, string, error) {
	first := c.Args().First()
	typ, err := template.ParseType(first)
	switch {
	case c.NArg() == 0:
		return "", "-", nil
	case c.NArg() == 1 && err != nil:
		return "", first, nil
	case c.NArg() == 1:
		return typ, "-", nil
	case err != nil:
		return "", "", &cmdline.Error{Class: cmdline.ClassUsage, Object: first, Err: err}
	}
	return typ, c.Args().Get(1), nil
}

func parseTemplate(p *option.Session, ctx context.Context, file string,
	o template.ParseOptions) (_ *template.Template, err error) {
	in, name, err := p.OpenInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	o.Name = name
	return template.Parse(ctx, in, o)
}

// RenderBundle renders the bundle in an image. References in a template never name local files, unless a transport says
// so.
func renderBundle(ctx context.Context, image string, o render.Options) (*declcfg.Catalog, error) {
	kind, err := render.Classify(image)
	if err == nil && kind != render.Image {
		err = fmt.Errorf("the reference is a local %s: use docker://%s for the image", kind, image)
	}
	if err != nil {
		return nil, fmt.Errorf("render reference %.300q: %w", image, err)
	}
	blobs, err := render.Reference(ctx, image, o)
	if err != nil {
		return nil, err
	}
	return declcfg.Collect(blobs)
}

// templateError returns the error with opm's wording if the program was started as opm.
func templateError(p *option.Session, err error) error {
	var problems *template.Error
	if !p.Opm || !errors.As(err, &problems) {
		return err
	}
	return &cmdline.Error{Class: cmdline.Classify(program.WithClass(err)), Err: errors.New(problems.OpmMessage())}
}

// templateWriter reads -o of template render and returns the function that writes the answer.
func templateWriter(p *option.Session, c *cli.Context) (func(io.Writer, *declcfg.Catalog) error, error) {
	if c.String("output") == "mermaid" {
		compat, err := p.Compat(c)
		if err != nil {
			return nil, err
		}
		o := graph.MermaidOptions{V0Semantics: true, Repair: compat == "", Warn: func(text string) { p.Log.Warn(text) }}
		return func(w io.Writer, catalog *declcfg.Catalog) error { return graph.WriteMermaid(w, catalog, o) }, nil
	}
	format, err := declcfg.ParseFormat(c.String("output"))
	if err != nil {
		return nil, cmdline.Usagef("invalid --output value %q, expected (json|yaml|mermaid)", c.String("output"))
	}
	return func(w io.Writer, catalog *declcfg.Catalog) error { return catalog.Write(w, format) }, nil
}
