package read

import (
	"context"
	"fmt"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
	"github.com/operator-bindery/bindery/render"
)

// renderOptions are the flags of "render".
type renderOptions struct {
	option.Reading
	output, imageTemplate   string
	migrate, resolveDigests bool
}

// RenderCommand returns "render".
func RenderCommand(p *option.Session) *cli.Command {
	o := &renderOptions{}
	return &cli.Command{
		Name:      "render",
		Usage:     "render bundles and catalogs to a stream of blobs",
		ArgsUsage: "REF...",
		Description: option.ReferenceHelp + `

Images and bundles are fetched in parallel; the order of the output does not depend on it. Nothing is printed
before everything is read, so the output is complete or empty. ndjson is one blob per line. A bundle that
comes from no registry has no image reference unless --image-ref-template is set.` +
			program.Examples("bindery render catalog -o yaml", "bindery render index.db --migrate",
				"bindery render bundle index.db catalog -o ndjson",
				"bindery render bundle --image-ref-template registry.example.com/acme/{{.Package}}:v{{.Version}} "+
					"--migrate",
				"bindery render oci:catalog.oci:v1",
				"bindery render registry.example.com/acme/etcd:v0.9.2 registry.example.com/acme/etcd:v0.9.4 --lock "+
					"images.lock --resolve-digests"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Value: "json", Destination: &o.output,
				Usage: "output `FORMAT` (json|yaml|ndjson)"},
			o.LevelFlag(""),
			&cli.BoolFlag{Name: "migrate", Destination: &o.migrate, Usage: "apply all migrations"},
			&cli.StringFlag{Name: "image-ref-template", Aliases: []string{"alpha-image-ref-template"}, Destination: &o.imageTemplate,
				Usage: "image reference `TEMPLATE` for bundle directories; may use {{.Package}}, {{.Name}} and " +
					"{{.Version}}"},
			&cli.BoolFlag{Name: "resolve-digests", Usage: "replace the tags of bundle images by digests",
				Destination: &o.resolveDigests},
			o.CompatFlag(""),
		}, o.Reading.Flags()...),
		Action: program.AtLeast(1, p.Action(func(ctx context.Context, args []string) error {
			return renderReferences(ctx, p, o, args)
		})),
	}
}

func renderReferences(ctx context.Context, p *option.Session, o *renderOptions, refs []string) (err error) {
	format := declcfg.FormatNDJSON
	if o.output != string(format) {
		if format, err = program.ParseCatalogFormat(o.output); err != nil && !p.Opm {
			return cmdline.Usagef("invalid --output value %q, expected (json|yaml|ndjson)", o.output)
		} else if err != nil {
			return err
		}
	}
	if p.Given("migrate") && p.Given("migrate-level") {
		return cmdline.Usagef(
			"if any flags in the group [migrate migrate-level] are set none of the others can be; [migrate " +
				"migrate-level] were all set")
	}
	with, err := o.Options(ctx, p, refs...)
	if err != nil {
		return err
	}
	if o.migrate {
		with.Level = edit.LevelLatest
	}
	with.Reuse = true
	if text := o.imageTemplate; text != "" {
		if with.ImageTemplate, err = render.ParseImageTemplate(text); err != nil {
			return cmdline.Usagef("invalid --image-ref-template %q: %w", text, err)
		}
	}
	with.ResolveDigests = o.resolveDigests
	if len(refs) > 1 && !p.Opm {
		with.Opened = inTurn(p, refs)
	}
	blobs, err := with.RenderAll(ctx, refs)
	if err != nil {
		return p.OpmMessage(err)
	}
	return p.Spooled(ctx, func(w io.Writer) error { return p.OpmMessage(format.Write(w, blobs)) })
}

// inTurn returns a function that logs references as they are read, numbered and in the order given, whatever the order
// in which their images are opened.
func inTurn(p *option.Session, refs []string) func(render.OpenedImage) {
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
			p.Log.Info(printable.Text(fmt.Sprintf("%d/%d %s: %s", next+1, len(refs), redact.Text(refs[next]), lines[next])))
		}
	}
}
