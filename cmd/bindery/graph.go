package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/internal/atomicfs"
	"github.com/operator-bindery/bindery/internal/ctxio"
	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/render"
)

func (p *program) graphCommand() *cli.Command {
	return &cli.Command{
		Name:      "graph",
		Usage:     "draw the upgrade graphs of a catalog",
		ArgsUsage: "REF...",
		Description: catalogHelp + `

svg and html are finished drawings: bundles are rows, newest first, channels are lanes, and upgrades point
upwards. html is a self-contained page. mermaid and dot are for other programs. The catalog need not be valid:
a drawing also shows what is wrong.` +
			examples("bindery graph catalog -p etcd --out etcd.svg", "bindery graph index.db --out graphs.html",
				"bindery graph catalog -p etcd -c alpha -o mermaid"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "output `FORMAT` (svg|html|mermaid|dot)",
				DefaultText: "by the extension of --out, or svg"},
			&cli.StringFlag{Name: "package", Aliases: []string{"p", "package-name"},
				Usage: "draw `PACKAGE` only"},
			&cli.StringSliceFlag{Name: "channel", Aliases: []string{"c"},
				Usage: "draw `CHANNEL` only; can be repeated"},
			&cli.StringFlag{Name: "out", Aliases: []string{"O"}, Usage: "write to `FILE` instead of standard output"},
			compatFlag(),
		}, readFlags()...),
		Action: atLeast(1, p.graph),
	}
}

// drawing writes a graph in one format.
type drawing func(graph.Options, io.Writer, *declcfg.Catalog) error

func (p *program) graph(c *cli.Context) error {
	draw, err := p.drawing(c)
	if err != nil {
		return err
	}
	file := c.String("out")
	if c.IsSet("out") {
		if err := atomicfs.CheckFile(file); err != nil {
			return fmt.Errorf("--out: %w", err)
		}
	}
	catalog, err := p.skeleton(c, c.String("package"))
	var name *render.NameError
	if errors.As(err, &name) && name.Reference != c.Args().First() && !c.IsSet("package") {
		// Unlike here, "list bundles REF PACKAGE" takes the package as an argument.
		return &cmdline.Error{Class: cmdline.ClassLocal, Object: name.Reference,
			Hint: "every argument is a reference; -p PACKAGE draws one package", Err: err}
	}
	if err != nil {
		return err
	}
	o := graph.Options{Package: c.String("package"), Channels: c.StringSlice("channel")}
	write := func(w io.Writer) error { return draw(o, ctxio.Writer{Ctx: c.Context, W: w}, catalog) }
	if c.IsSet("out") {
		return writeFileAtomically(file, write)
	}
	return p.spooled(c.Context, write)
}

// drawing reads -o: its value, or the extension of the file's name.
func (p *program) drawing(c *cli.Context) (drawing, error) {
	format := c.String("output")
	if !c.IsSet("output") {
		switch format = strings.TrimPrefix(strings.ToLower(filepath.Ext(c.String("out"))), "."); format {
		case "mmd":
			format = "mermaid"
		case "gv":
			format = "dot"
		case "htm":
			format = "html"
		case "html", "dot", "svg", "mermaid":
		case "png", "jpg", "jpeg", "gif", "webp", "pdf":
			e := cmdline.Usagef("%s: unsupported format %s, expected (svg|html|mermaid|dot)", c.String("out"), format)
			e.Object, e.Hint = c.String("out"), "convert an SVG with a browser, rsvg-convert or inkscape"
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
		return func(o graph.Options, w io.Writer, catalog *declcfg.Catalog) error {
			chosen, err := o.Select(catalog)
			if err != nil {
				return err
			}
			return graph.MermaidOptions{Repair: true, Warn: p.warnGraph}.Write(w, chosen)
		}, nil
	}
	return nil, cmdline.Usagef("invalid --output value %q, expected (svg|html|mermaid|dot)", format)
}

// warnGraph logs what is not drawn.
func (p *program) warnGraph(message string) {
	if p.opm {
		fmt.Fprintf(p.stderr, "warning: %s\n", printable.Text(message))
		return
	}
	p.log.Warn(message)
}

// skeleton reads the catalogs that the arguments name, without the manifests of bundles. A repeated reference counts
// once. If pkg is not empty, only that package is read from file-based catalogs; if it is missing, the catalogs are
// read completely, so that the error can suggest other names.
func (p *program) skeleton(c *cli.Context, pkg string) (*declcfg.Catalog, error) {
	o, err := p.renderOptions(c)
	if err != nil {
		return nil, err
	}
	o.Allow, o.Skeleton = catalogKinds(), true
	if pkg != "" {
		o.Packages = []string{pkg}
	}
	var refs []string
	for _, ref := range c.Args().Slice() {
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	blobs, err := o.RenderAll(c.Context, refs)
	if err != nil {
		return nil, p.opmMessage(err)
	}
	catalog := &declcfg.Catalog{}
	for blob, err := range blobs {
		if err != nil {
			return nil, p.opmMessage(err)
		}
		if b, ok := blob.(*declcfg.Bundle); ok {
			b.Reduce()
		}
		catalog.Add(blob)
	}
	if pkg != "" && len(catalog.Packages)+len(catalog.Channels)+len(catalog.Bundles) == 0 {
		return p.skeleton(c, "")
	}
	return catalog, nil
}

// writeFileAtomically writes a file that appears when it is complete.
func writeFileAtomically(name string, write func(io.Writer) error) error {
	f, err := atomicfs.NewFile(name, 0o666)
	if err != nil {
		return err
	}
	if err = write(f); err == nil {
		err = f.Commit()
	}
	return errors.Join(err, f.Abort())
}
