package read

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/internal/ctxio"
)

// RenderGraphCommand returns opm's command for mermaid drawings, with byte-identical output.
func RenderGraphCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:      "render-graph",
		Usage:     "draw upgrade graphs in mermaid as opm does",
		ArgsUsage: "REF...",
		Description: option.CatalogHelp + `

The output equals that of opm. For catalogs with several packages "bindery graph -o mermaid" marks
deprecations more exactly.` +
			program.Examples("bindery alpha render-graph index.db",
				"bindery alpha render-graph catalog -p etcd --draw-v0-semantics",
				"bindery alpha render-graph catalog --minimum-edge etcdoperator.v0.9.2"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "minimum-edge", Usage: "omit everything below `BUNDLE`"},
			&cli.StringFlag{Name: "package-name", Aliases: []string{"p"}, Usage: "draw `PACKAGE` only"},
			&cli.BoolFlag{Name: "draw-v0-semantics", Usage: "mark bundles that OLM v0 does not upgrade from"},
			program.CompatFlag(),
		}, option.ReadFlags()...),
		Action: program.AtLeast(1, func(c *cli.Context) error { return renderGraph(p, c) }),
	}
}

func renderGraph(p *option.Session, c *cli.Context) error {
	catalog, err := skeleton(p, c, c.Args().Slice(), "")
	if err != nil {
		return err
	}
	return p.Spooled(c.Context, func(w io.Writer) error {
		return graph.WriteMermaid(ctxio.Writer{Ctx: c.Context, W: w}, catalog, graph.MermaidOptions{
			Package: c.String("package-name"), MinimumEdge: c.String("minimum-edge"),
			V0Semantics: c.Bool("draw-v0-semantics"), Warn: func(message string) { warnGraph(p, message) },
		})
	})
}
