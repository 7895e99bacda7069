package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/regularfile"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/render/template"
)

func (p *program) templateCommand() *cli.Command {
	return p.groupCommand("template", "render templates to catalogs, and convert catalogs to templates",
		p.templateRenderCommand("template render"),
		p.templateConvertCommand("template convert"),
	)
}

// templateRenderCommand returns the command under one of its names, such as "alpha render-template".
func (p *program) templateRenderCommand(name string) *cli.Command {
	return &cli.Command{
		Name:      lastWord(name),
		Usage:     "render a template to a catalog",
		ArgsUsage: "[TYPE] [FILE]",
		Description: `A template is one YAML or JSON document of type basic (a catalog with images in place of
bundles), semver (images, from whose versions channels are generated) or substitutes (a catalog with
substitutions of bundles). The schema field determines the type; TYPE requires one. FILE is - or absent for
standard input. Every image is rendered once. All problems of the template are reported together with their
lines; the output is complete or empty.` +
			examples("bindery "+name+" template.yaml", "bindery "+name+" semver semver.yaml -o yaml",
				"bindery "+name+" basic template.yaml -o yaml --migrate-level bundle-object-to-csv-metadata"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "json",
				Usage: "output `FORMAT` (json|yaml), or a drawing of the channels (mermaid)"},
			migrateLevelFlag(""),
			&cli.BoolFlag{Name: "resolve-digests", Usage: "replace the tags of bundle images by digests"},
			compatFlag(),
		}, readFlags()...),
		Action: between(0, 2, p.templateRender),
	}
}

// lastWord returns the last name of a full command name.
func lastWord(name string) string { return name[strings.LastIndexByte(name, ' ')+1:] }

// hidden hides a command from help.
func hidden(c *cli.Command) *cli.Command {
	c.Hidden = true
	return c
}

func (p *program) templateRender(c *cli.Context) error {
	write, err := p.templateWriter(c)
	if err != nil {
		return err
	}
	o, err := p.renderOptions(c)
	if err != nil {
		return err
	}
	typ, file, err := templateArgs(c)
	if err != nil {
		return err
	}
	compat := o.Compat != ""
	tmpl, err := p.parseTemplate(c.Context, file, template.ParseOptions{Type: typ, Compat: compat, Warn: p.warnAt})
	if errors.Is(err, fs.ErrNotExist) && c.NArg() == 1 && !p.opm {
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: file, Err: err,
			Hint: fmt.Sprintf(
				"the argument is a file with a template, or a type to read from standard input: one of %v",
				template.Types())}
	}
	if err != nil {
		return p.templateError(err)
	}
	level := o.Level
	o.Level = edit.LevelNone // the template needs the manifests first
	o.Allow = []render.Kind{render.BundleImage}
	o.ResolveDigests = c.Bool("resolve-digests")
	catalog, err := tmpl.Render(c.Context, template.RenderOptions{
		Render: func(ctx context.Context, image string) (*declcfg.Catalog, error) {
			return renderBundle(ctx, image, o)
		},
		Jobs: o.Jobs, Level: level, Compat: compat, Warn: p.warnAt,
	})
	if err != nil {
		return p.templateError(err)
	}
	return p.spooled(c.Context, func(w io.Writer) error { return write(w, catalog) })
}

// spooled prints an answer when it is complete.
func (p *program) spooled(ctx context.Context, write func(io.Writer) error) (err error) {
	var answer cmdline.Spool
	defer func() { err = errors.Join(err, answer.Close()) }()
	w := bufio.NewWriterSize(&answer, 1<<20)
	if err := write(w); err != nil {
		return err
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := p.saveLock(); err != nil {
		return err
	}
	return answer.Flush(ctx, p.stdout)
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

// openInput opens a file that the user names, or standard input for "-", and returns its name for messages.
func (p *program) openInput(ctx context.Context, file string) (io.ReadCloser, string, error) {
	if file == "-" {
		return io.NopCloser(p.stdin), "stdin", nil
	}
	f, err := regularfile.OpenNamed(ctx, file)
	return f, file, err
}

func (p *program) parseTemplate(ctx context.Context, file string,
	o template.ParseOptions) (_ *template.Template, err error) {
	in, name, err := p.openInput(ctx, file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	o.Name = name
	return o.Parse(ctx, in)
}

// renderBundle renders the bundle in an image. References in a template never name local files, unless a transport says
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
func (p *program) templateError(err error) error {
	var problems *template.Error
	if !p.opm || !errors.As(err, &problems) {
		return err
	}
	return &cmdline.Error{Class: cmdline.Classify(withClass(err)), Err: errors.New(problems.OpmMessage())}
}

// templateWriter reads -o of template render and returns the function that writes the answer.
func (p *program) templateWriter(c *cli.Context) (func(io.Writer, *declcfg.Catalog) error, error) {
	if c.String("output") == "mermaid" {
		compat, err := p.compat(c)
		if err != nil {
			return nil, err
		}
		o := graph.MermaidOptions{V0Semantics: true, Repair: compat == "", Warn: func(text string) { p.log.Warn(text) }}
		return func(w io.Writer, catalog *declcfg.Catalog) error { return o.Write(w, catalog) }, nil
	}
	format, err := declcfg.ParseFormat(c.String("output"))
	if err != nil {
		return nil, cmdline.Usagef("invalid --output value %q, expected (json|yaml|mermaid)", c.String("output"))
	}
	return func(w io.Writer, catalog *declcfg.Catalog) error { return catalog.Write(w, format) }, nil
}
