package main

import "github.com/urfave/cli/v2"

// indexCommand holds opm's commands for index images.
func (p *program) indexCommand() *cli.Command {
	return &cli.Command{
		Name: "index", Usage: "work with index images, under opm's names", Hidden: !p.opm,
		Action:      p.group,
		Subcommands: []*cli.Command{p.indexExportCommand()},
	}
}
