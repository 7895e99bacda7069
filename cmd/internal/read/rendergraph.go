package read

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
	"github.com/operator-bindery/bindery/declcfg/graph"
	"github.com/operator-bindery/bindery/internal/ctxio"
)

// renderGraphOptions are the flags of "alpha render-graph".
type renderGraphOptions struct {
	option.Reading
	minimumEdge, pkg string
	v0Semantics      bool
}

// RenderGraphCommand returns opm's command for mermaid drawings, with byte-identical output.
func RenderGraphCommand(p *option.Session) *cli.Command {
	o := &renderGraphOptions{}
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
			&cli.StringFlag{Name: "minimum-edge", Destination: &o.minimumEdge, Usage: "omit everything below `BUNDLE`"},
			&cli.StringFlag{Name: "package-name", Aliases: []string{"p"}, Destination: &o.pkg, Usage: "draw `PACKAGE` only"},
			&cli.BoolFlag{Name: "draw-v0-semantics", Usage: "mark bundles that OLM v0 does not upgrade from",
				Destination: &o.v0Semantics},
			o.CompatFlag(""),
		}, o.Reading.Flags()...),
		Action: program.AtLeast(1, p.Action(func(ctx context.Context, args []string) error {
			return renderGraph(ctx, p, o, args)
		})),
	}
}

func renderGraph(ctx context.Context, p *option.Session, o *renderGraphOptions, refs []string) error {
	catalog, err := skeleton(ctx, p, &o.Reading, refs, "")
	if err != nil {
		return err
	}
	return p.Spooled(ctx, func(w io.Writer) error {
		return graph.MermaidOptions{
			Package: o.pkg, MinimumEdge: o.minimumEdge,
			V0Semantics: o.v0Semantics, Warn: func(message string) { warnGraph(p, message) },
		}.Write(ctxio.Writer{Ctx: ctx, W: w}, catalog)
	})
}
