package main

import (
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

func (p *program) renderCommand() *cli.Command {
	return &cli.Command{
		Name:      "render",
		Usage:     "render bundles and catalogs to a stream of blobs",
		ArgsUsage: "REF...",
		Description: referenceHelp + `

Images and bundles are fetched in parallel; the order of the output does not depend on it. Nothing is printed
before everything is read, so the output is complete or empty. ndjson is one blob per line. A bundle that
comes from no registry has no image reference unless --image-ref-template is set.` +
			examples("bindery render catalog -o yaml", "bindery render index.db --migrate",
				"bindery render bundle index.db catalog -o ndjson",
				"bindery render bundle --image-ref-template registry.example.com/acme/{{.Package}}:v{{.Version}} "+
					"--migrate",
				"bindery render oci:catalog.oci:v1",
				"bindery render registry.example.com/acme/etcd:v0.9.2 registry.example.com/acme/etcd:v0.9.4 --lock "+
					"images.lock --resolve-digests"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "json",
				Usage: "output `FORMAT` (json|yaml|ndjson)"},
			migrateLevelFlag(""),
			&cli.BoolFlag{Name: "migrate", Usage: "apply all migrations"},
			&cli.StringFlag{Name: "image-ref-template", Aliases: []string{"alpha-image-ref-template"},
				Usage: "image reference `TEMPLATE` for bundle directories; may use {{.Package}}, {{.Name}} and " +
					"{{.Version}}"},
			&cli.BoolFlag{Name: "resolve-digests", Usage: "replace the tags of bundle images by digests"},
			compatFlag(),
		}, readFlags()...),
		Action: atLeast(1, p.render),
	}
}

func (p *program) render(c *cli.Context) (err error) {
	format := declcfg.FormatNDJSON
	if c.String("output") != string(format) {
		if format, err = catalogFormat(c); err != nil && !p.opm {
			return cmdline.Usagef("invalid --output value %q, expected (json|yaml|ndjson)", c.String("output"))
		} else if err != nil {
			return err
		}
	}
	if c.IsSet("migrate") && c.IsSet("migrate-level") {
		return cmdline.Usagef(
			"if any flags in the group [migrate migrate-level] are set none of the others can be; [migrate " +
				"migrate-level] were all set")
	}
	o, err := p.renderOptions(c)
	if err != nil {
		return err
	}
	if c.Bool("migrate") {
		o.Level = edit.LatestLevel()
	}
	o.Reuse = true
	if text := c.String("image-ref-template"); text != "" {
		if o.ImageTemplate, err = render.ParseImageTemplate(text); err != nil {
			return cmdline.Usagef("invalid --image-ref-template %q: %w", text, err)
		}
	}
	o.ResolveDigests = c.Bool("resolve-digests")
	if refs := c.Args().Slice(); len(refs) > 1 && !p.opm {
		o.Opened = p.inTurn(refs)
	}
	blobs, err := o.RenderAll(c.Context, c.Args().Slice())
	if err != nil {
		return p.opmMessage(err)
	}
	return p.spooled(c.Context, func(w io.Writer) error { return p.opmMessage(format.Write(w, blobs)) })
}

// renderOptions reads the flags for reading a reference.
func (p *program) renderOptions(c *cli.Context) (render.Options, error) {
	o := render.Options{Jobs: c.Int("jobs"), Warn: p.warnAt, Opened: p.opened,
		Read: p.loading(c.Args().Slice()...), Progress: p.loadingDatabases()}
	var err error
	if o.Images, err = p.client(c); err != nil {
		return o, err
	}
	if o.ImageLimits, err = imageLimits(c); err != nil {
		return o, err
	}
	if o.Level, err = edit.ParseLevel(c.String("migrate-level")); err != nil {
		return o, &cmdline.Error{Class: cmdline.ClassUsage, Object: c.String("migrate-level"), Err: err}
	}
	o.Compat, err = p.compat(c)
	return o, err
}

// compat reads --compat. Under the name opm it defaults to opm's answers.
func (p *program) compat(c *cli.Context) (sqlite.Compat, error) {
	switch c.String("compat") {
	case "opm":
		return sqlite.CompatOPM, nil
	case "":
		if p.opm {
			return sqlite.CompatOPM, nil
		}
		return sqlite.CompatNone, nil
	}
	return "", cmdline.Usagef("invalid --compat value %q, expected (opm)", c.String("compat"))
}

// inTurn returns a function that logs references as they are read, numbered and in the order given, whatever the order
// in which their images are opened.
func (p *program) inTurn(refs []string) func(render.OpenedImage) {
	lines, next := make([]string, len(refs)), 0
	for i, ref := range refs {
		if kind, err := render.Classify(ref); err == nil && kind != render.Image {
			lines[i] = string(kind)
		}
	}
	return func(opened render.OpenedImage) {
		for i, ref := range refs {
			if lines[i] == "" && ref == opened.Reference {
				lines[i] = fmt.Sprintf("%s %s", opened.Kind, opened.Digest)
				break
			}
		}
		for ; next < len(refs) && lines[next] != ""; next++ {
			p.log.Info(printable.Text(fmt.Sprintf("%d/%d %s: %s", next+1, len(refs), redact.Text(refs[next]), lines[next])))
		}
	}
}

// opened logs an image that was opened.
func (p *program) opened(i render.OpenedImage) {
	if p.opm {
		return
	}
	p.log.Info(fmt.Sprintf("%s %s", i.Kind, i.Digest))
}
