package read

import (
	"cmp"
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
	"github.com/operator-bindery/bindery/render"
)

func GraphCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:      "graph",
		Usage:     "draw the upgrade graphs of a catalog",
		ArgsUsage: "CATALOG [PACKAGE]",
		Description: option.CatalogHelp + `

svg and html are finished drawings: bundles are rows, newest first, channels are lanes, and upgrades point
upwards. html is a self-contained page. mermaid and dot are for other programs. The catalog need not be valid:
a drawing also shows what is wrong.` +
			program.Examples("bindery graph catalog etcd --to etcd.svg", "bindery graph index.db --to graphs.html",
				"bindery graph catalog etcd -c alpha -o mermaid"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "output `FORMAT` (svg|html|mermaid|dot)",
				DefaultText: "by the extension of --to, or svg"},
			&cli.StringFlag{Name: "package", Aliases: []string{"p", "package-name"},
				Usage: "draw `PACKAGE` only, as the argument"},
			&cli.StringSliceFlag{Name: "channel", Aliases: []string{"c"},
				Usage: "draw `CHANNEL` only; can be repeated"},
			&cli.StringFlag{Name: "to", Aliases: []string{"out", "O"}, Usage: "write to `FILE` instead of standard output"},
			program.CompatFlag(),
		}, option.ReadFlags()...),
		Action: program.AtLeast(1, func(c *cli.Context) error { return runGraph(p, c) }),
	}
}

// drawing writes a graph in one format.
type drawing func(io.Writer, *declcfg.Catalog, graph.Options) error

func runGraph(p *option.Session, c *cli.Context) error {
	draw, err := readDrawing(p, c)
	if err != nil {
		return err
	}
	file := c.String("to")
	if c.IsSet("to") {
		if err := atomicfs.CheckFile(file); err != nil {
			return fmt.Errorf("--to: %w", err)
		}
	}
	refs, pkg := option.PackageArgument(c.Args().Slice())
	if pkg != "" && c.String("package") != "" {
		return cmdline.Usagef("two packages are named: %q and --package %q", pkg, c.String("package"))
	}
	pkg = cmp.Or(pkg, c.String("package"))
	catalog, err := skeleton(p, c, refs, pkg)
	if err != nil {
		return err
	}
	o := graph.Options{Package: pkg, Channels: c.StringSlice("channel")}
	write := func(w io.Writer) error { return draw(ctxio.Writer{Ctx: c.Context, W: w}, catalog, o) }
	if c.IsSet("to") {
		return writeFileAtomically(file, write)
	}
	return p.Spooled(c.Context, write)
}

// readDrawing reads -o: its value, or the extension of the file's name.
func readDrawing(p *option.Session, c *cli.Context) (drawing, error) {
	format := c.String("output")
	if !c.IsSet("output") {
		switch format = strings.TrimPrefix(strings.ToLower(filepath.Ext(c.String("to"))), "."); format {
		case "mmd":
			format = "mermaid"
		case "gv":
			format = "dot"
		case "htm":
			format = "html"
		case "html", "dot", "svg", "mermaid":
		case "png", "jpg", "jpeg", "gif", "webp", "pdf":
			e := cmdline.Usagef("%s: unsupported format %s, expected (svg|html|mermaid|dot)", c.String("to"), format)
			e.Object, e.Hint = c.String("to"), "convert an SVG with a browser, rsvg-convert or inkscape"
			return nil, e
		default:
			format = "svg"
		}
	}
	switch format {
	case "svg":
		return graph.WriteSVG, nil
	case "html":
		return graph.WriteHTML, nil
	case "dot":
		return graph.WriteDOT, nil
	case "mermaid":
		return func(w io.Writer, catalog *declcfg.Catalog, o graph.Options) error {
			chosen, err := o.Select(catalog)
			if err != nil {
				return err
			}
			return graph.WriteMermaid(w, chosen, graph.MermaidOptions{Repair: true, Warn: func(message string) { warnGraph(p, message) }})
		}, nil
	}
	return nil, cmdline.Usagef("invalid --output value %q, expected (svg|html|mermaid|dot)", format)
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
func skeleton(p *option.Session, c *cli.Context, named []string, pkg string) (*declcfg.Catalog, error) {
	o, err := p.RenderOptions(c)
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
	blobs, err := render.References(c.Context, refs, o)
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
		return skeleton(p, c, named, "")
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
