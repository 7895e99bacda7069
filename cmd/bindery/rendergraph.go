package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/internal/ctxio"
)

// renderGraphCommand returns opm's command for mermaid drawings, with byte-identical output.
func (p *program) renderGraphCommand() *cli.Command {
	return &cli.Command{
		Name:      "render-graph",
		Usage:     "draw upgrade graphs in mermaid as opm does",
		ArgsUsage: "REF...",
		Description: catalogHelp + `

The output equals that of opm. For catalogs with several packages "bindery graph -o mermaid" marks
deprecations more exactly.` +
			examples("bindery alpha render-graph index.db",
				"bindery alpha render-graph catalog -p etcd --draw-v0-semantics",
				"bindery alpha render-graph catalog --minimum-edge etcdoperator.v0.9.2"),
		Flags: append([]cli.Flag{
			&cli.StringFlag{Name: "minimum-edge", Usage: "omit everything below `BUNDLE`"},
			&cli.StringFlag{Name: "package-name", Aliases: []string{"p"}, Usage: "draw `PACKAGE` only"},
			&cli.BoolFlag{Name: "draw-v0-semantics", Usage: "mark bundles that OLM v0 does not upgrade from"},
			compatFlag(),
		}, readFlags()...),
		Action: atLeast(1, p.renderGraph),
	}
}

func (p *program) renderGraph(c *cli.Context) error {
	catalog, err := p.skeleton(c, "")
	if err != nil {
		return err
	}
	return p.spooled(c.Context, func(w io.Writer) error {
		return graph.MermaidOptions{
			Package: c.String("package-name"), MinimumEdge: c.String("minimum-edge"),
			V0Semantics: c.Bool("draw-v0-semantics"), Warn: p.warnGraph,
		}.Write(ctxio.Writer{Ctx: c.Context, W: w}, catalog)
	})
}
