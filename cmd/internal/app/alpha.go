package app

import (
	"github.com/urfave/cli/v2"

	bundlecmd "github.com/operator-bindery/bindery/cmd/internal/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	readcmd "github.com/operator-bindery/bindery/cmd/internal/read"
)

// alphaCommand groups opm's names of commands that have a shorter name here.
func alphaCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name: "alpha", Hidden: true, Usage: "commands under their opm names",
		Action: p.Group,
		Subcommands: []*cli.Command{readcmd.ListCommand(p), readcmd.RenderGraphCommand(p), bundlecmd.Command(p),
			readcmd.TemplateRenderCommand(p, "alpha render-template"), readcmd.TemplateConvertCommand(p, "alpha convert-template")},
	}
}
