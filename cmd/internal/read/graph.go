package read

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/printable"
)

// graphOptions are the flags of "graph".
type graphOptions struct {
	option.Reading
	output, pkg, to string
	channels        cli.StringSlice
}

// GraphCommand returns "graph".
func GraphCommand(p *option.Session) *cli.Command {
	o := &graphOptions{}
	return &cli.Command{
		Name:      "graph",
		Usage:     "draw the upgrade graphs of a catalog",
		ArgsUsage: "CATALOG [PACKAGE]",
		Description: option.CatalogHelp + `

The drawing is printed unless --to names a file. opm's "alpha render-graph" prints mermaid: that is -o mermaid.
svg and html are finished drawings: bundles are rows, newest first, channels are lanes, and upgrades point
upwards. html is a self-contained page. mermaid and dot are for other programs. The catalog need not be valid:
a drawing also shows what is wrong.` +
			program.Examples("bindery graph catalog etcd --to etcd.svg", "bindery graph index.db --to graphs.html",
				"bindery graph catalog etcd -c alpha -o mermaid"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Destination: &o.output, Usage: "output `FORMAT` (svg|html|mermaid|dot)",
				DefaultText: "by the extension of --to, or svg"},
			&cli.StringFlag{Name: "package", Aliases: []string{"p", "package-name"}, Destination: &o.pkg,
				Usage: "draw `PACKAGE` only, as the argument"},
			&cli.StringSliceFlag{Name: "channel", Aliases: []string{"c"}, Destination: &o.channels,
				Usage: "draw `CHANNEL` only; can be repeated"},
			&cli.StringFlag{Name: "to", Aliases: []string{"out", "O"}, Destination: &o.to, Usage: "write to `FILE` instead of standard output"},
			o.CompatFlag(""),
		}, o.Reading.Flags()...),
		Action: program.AtLeast(1, p.Action(func(ctx context.Context, args []string) error {
			return drawGraph(ctx, p, o, args)
		})),
	}
}

// drawing writes a graph in one format.
type drawing func(graph.Options, io.Writer, *declcfg.Catalog) error

func drawGraph(ctx context.Context, p *option.Session, o *graphOptions, args []string) error {
	draw, err := o.drawing(p)
	if err != nil {
		return err
	}
	toFile := p.Given("to") && o.to != "-"
	if toFile {
		if err := atomicfs.CheckFile(o.to); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	refs, pkg := option.PackageArgument(args)
	if pkg != "" && o.pkg != "" {
		return cmdline.Usagef("two packages are named: %q and --package %q", pkg, o.pkg)
	}
	pkg = cmp.Or(pkg, o.pkg)
	catalog, err := skeleton(ctx, p, &o.Reading, refs, pkg)
	if err != nil {
		return err
	}
	with := graph.Options{Package: pkg, Channels: o.channels.Value()}
	write := func(w io.Writer) error { return draw(with, ctxio.Writer{Ctx: ctx, W: w}, catalog) }
	if toFile {
		return writeFileAtomically(o.to, write)
	}
	return p.Spooled(ctx, write)
}

// drawing reads -o: its value, or the extension of the file's name.
func (o *graphOptions) drawing(p *option.Session) (drawing, error) {
	format := o.output
	if !p.Given("output") {
		switch format = strings.TrimPrefix(strings.ToLower(filepath.Ext(o.to)), "."); format {
		case "mmd":
			format = "mermaid"
		case "gv":
			format = "dot"
		case "htm":
			format = "html"
		case "html", "dot", "svg", "mermaid":
		case "png", "jpg", "jpeg", "gif", "webp", "pdf":
			e := cmdline.Usagef("%s: unsupported format %s, expected (svg|html|mermaid|dot)", o.to, format)
			e.Object, e.Hint = o.to, "convert an SVG with a browser, rsvg-convert or inkscape"
			return nil, e
		default:
			format = "svg"
		}
	}
	switch format {
	case "svg":
		return graph.Options.WriteSVG, nil
	case "html":
		return graph.Options.WriteHTML, nil
	case "dot":
		return graph.Options.WriteDOT, nil
	case "mermaid":
		return func(with graph.Options, w io.Writer, catalog *declcfg.Catalog) error {
			chosen, err := with.Select(catalog)
			if err != nil {
				return err
			}
			return graph.MermaidOptions{Repair: true, Warn: func(message string) { warnGraph(p, message) }}.Write(w, chosen)
		}, nil
	}
	e := cmdline.Usagef("invalid --output value %q, expected (svg|html|mermaid|dot)", format)
	e.Hint = "--to FILE writes the drawing to a file, in the format of its extension; without it, it is printed, " +
		"and -o mermaid prints it for mermaid, as \"bindery alpha render-graph\" does with the flags of opm"
	return nil, e
}

// warnGraph logs what is not drawn.
func warnGraph(p *option.Session, message string) {
	if p.Opm {
		fmt.Fprintf(p.Stderr, "warning: %s\n", printable.Text(message))
		return
	}
	p.Log.Warn(message)
}

// skeleton reads the catalogs that the arguments name, without the manifests of bundles. A repeated reference counts
// once. If pkg is not empty, only that package is read from file-based catalogs; if it is missing, the catalogs are
// read completely, so that the error can suggest other names.
func skeleton(ctx context.Context, p *option.Session, from *option.Reading, named []string, pkg string) (*declcfg.Catalog, error) {
	o, err := from.Options(ctx, p, named...)
	if err != nil {
		return nil, err
	}
	o.Allow, o.Skeleton = option.CatalogKinds(), true
	if pkg != "" {
		o.Packages = []string{pkg}
	}
	var refs []string
	for _, ref := range named {
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	blobs, err := o.RenderAll(ctx, refs)
	if err != nil {
		return nil, p.OpmMessage(err)
	}
	catalog := &declcfg.Catalog{}
	for blob, err := range blobs {
		if err != nil {
			return nil, p.OpmMessage(err)
		}
		if b, ok := blob.(*declcfg.Bundle); ok {
			b.Reduce()
		}
		catalog.Add(blob)
	}
	if pkg != "" && len(catalog.Packages)+len(catalog.Channels)+len(catalog.Bundles) == 0 {
		return skeleton(ctx, p, from, named, "")
	}
	return catalog, nil
}

// writeFileAtomically writes a file that appears when it is complete.
func writeFileAtomically(name string, write func(io.Writer) error) (err error) {
	f, err := atomicfs.NewFile(name, 0o666)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Abort()) }()
	if err := write(f); err != nil {
		return err
	}
	return f.Commit()
}
