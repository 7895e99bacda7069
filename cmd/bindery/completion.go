package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
)

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "To load it into the running bash: source <(bindery completion bash)" + examples(
			"bindery completion bash", "bindery completion zsh", "bindery completion fish"),
		Action: exactly(1, func(c *cli.Context) error {
			script, err := cmdline.Script(c.Args().First(), c.App.Name)
			if err != nil {
				return err
			}
			_, err = io.WriteString(p.stdout, script)
			return err
		}),
	}
}

// completeCommand returns the hidden command that completion scripts call.
func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true,
		Usage: "complete a command line",
		Action: func(c *cli.Context) error {
			return cmdline.Complete(c.App, c.Args().Slice(), p.catalogNames(c.Context)).Write(p.stdout)
		},
	}
}
