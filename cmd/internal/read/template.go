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
	"github.com/operator-bindery/bindery/cmd/internal/hint"
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

// templateOptions are the flags of "template render" and "template convert".
type templateOptions struct {
	option.Reading
	output, to     string
	resolveDigests bool
}

// TemplateRenderCommand returns the command under one of its names, such as "alpha render-template".
func TemplateRenderCommand(p *option.Session, name string) *cli.Command {
	o := &templateOptions{}
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
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "json", Destination: &o.output,
				Usage: "output `FORMAT` (json|yaml), or a drawing of the channels (mermaid)"},
			&cli.StringFlag{Name: "to", Usage: "write the catalog to `DIR`, which must be absent or empty", Destination: &o.to},
			o.LevelFlag(""),
			&cli.BoolFlag{Name: "resolve-digests", Usage: "replace the tags of bundle images by digests",
				Destination: &o.resolveDigests},
			o.CompatFlag(""),
		}, o.Reading.Flags()...),
		Action: program.Between(0, 2, p.Action(func(ctx context.Context, args []string) error {
			return renderTemplate(ctx, p, o, args)
		})),
	}
}

// lastWord returns the last name of a full command name.
func lastWord(name string) string { return name[strings.LastIndexByte(name, ' ')+1:] }

func renderTemplate(ctx context.Context, p *option.Session, o *templateOptions, args []string) error {
	write, err := o.writer(p)
	if err != nil {
		return err
	}
	with, err := o.Options(ctx, p, args...)
	if err != nil {
		return err
	}
	typ, file, err := templateArgs(args)
	if err != nil {
		return err
	}
	compat := with.Compat != ""
	tmpl, err := parseTemplate(p, ctx, file, template.ParseOptions{Type: typ, Compat: compat, Warn: p.WarnAt})
	if errors.Is(err, fs.ErrNotExist) && len(args) == 1 && !p.Opm {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: file, Err: err,
			Hint: fmt.Sprintf(
				"the argument is a file with a template, or a type to read from standard input: one of %v",
				template.Types())}
	}
	if err != nil {
		return templateError(p, err)
	}
	level := with.Level
	with.Level = edit.LevelNone // the template needs the manifests first
	with.Allow = []render.Kind{render.BundleImage}
	with.ResolveDigests = o.resolveDigests
	catalog, err := tmpl.Render(ctx, template.RenderOptions{
		Render: func(ctx context.Context, image string) (*declcfg.Catalog, error) {
			return renderBundle(ctx, image, with)
		},
		Jobs: with.Jobs, Level: level, Compat: compat, Warn: p.WarnAt,
	})
	if err != nil {
		return templateError(p, err)
	}
	if o.to != "" {
		return o.writeCatalog(ctx, p, catalog)
	}
	return p.Spooled(ctx, func(w io.Writer) error { return write(w, catalog) })
}

// writeCatalog writes a catalog to the directory of --to.
func (o *templateOptions) writeCatalog(ctx context.Context, p *option.Session, catalog *declcfg.Catalog) error {
	format, err := declcfg.ParseFormat(o.output)
	if err != nil {
		return cmdline.Usagef("invalid --output value %q, expected (json|yaml) with --to", o.output)
	}
	if err := p.SaveLock(); err != nil {
		return err
	}
	if err := declcfg.WriteFS(ctx, o.to, format, catalog.Blobs()); err != nil {
		return err
	}
	p.Log.Info(fmt.Sprintf("wrote %s to %q", program.Count(len(catalog.Packages), "package"), o.to))
	return nil
}

// templateArgs reads [TYPE] [FILE]. A single argument is a type if it is the name of one.
func templateArgs(args []string) (template.Type, string, error) {
	if len(args) == 0 {
		return "", "-", nil
	}
	typ, err := template.ParseType(args[0])
	switch {
	case len(args) == 1 && err != nil:
		return "", args[0], nil
	case len(args) == 1:
		return typ, "-", nil
	case err != nil:
		return "", "", &cmdline.Error{Class: cmdline.ClassUsage, Object: args[0], Err: err}
	}
	return typ, args[1], nil
}

func parseTemplate(p *option.Session, ctx context.Context, file string,
	o template.ParseOptions) (_ *template.Template, err error) {
	in, name, err := p.OpenInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	o.Name = name
	return o.Parse(ctx, in)
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
	blobs, err := o.Render(ctx, image)
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
	return &cmdline.Error{Class: cmdline.Classify(hint.WithClass(err)), Err: errors.New(problems.OpmMessage())}
}

// writer reads -o of template render and returns the function that writes the answer.
func (o *templateOptions) writer(p *option.Session) (func(io.Writer, *declcfg.Catalog) error, error) {
	if o.output == "mermaid" {
		compat, err := o.Compat(p)
		if err != nil {
			return nil, err
		}
		with := graph.MermaidOptions{V0Semantics: true, Repair: compat == "", Warn: func(text string) { p.Log.Warn(text) }}
		return func(w io.Writer, catalog *declcfg.Catalog) error { return with.Write(w, catalog) }, nil
	}
	format, err := declcfg.ParseFormat(o.output)
	if err != nil {
		return nil, cmdline.Usagef("invalid --output value %q, expected (json|yaml|mermaid)", o.output)
	}
	return func(w io.Writer, catalog *declcfg.Catalog) error { return catalog.Write(w, format) }, nil
}
