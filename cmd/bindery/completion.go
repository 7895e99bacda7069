package main

import (
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/internal/cliutil"
)

func (p *program) completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a completion script for a shell",
		ArgsUsage:   "bash|zsh|fish",
		Description: "To have it in the running bash: source <(bindery completion bash)" + examples("bindery completion bash", "bindery completion zsh", "bindery completion fish"),
		Action: exactly(1, func(c *cli.Context) error {
			script, err := cliutil.Script(c.Args().First(), c.App.HelpName)
			if err != nil {
				return err
			}
			_, err = io.WriteString(p.stdout, script)
			return err
		}),
	}
}

// completeCommand is what the completion scripts call.
func (p *program) completeCommand() *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true,
		Usage: "say how a command line may go on",
		Action: func(c *cli.Context) error {
			return cliutil.Complete(c.App, c.Args().Slice()).Write(p.stdout)
		},
	}
}

func (p *program) manCommand() *cli.Command {
	return &cli.Command{
		Name:        "man",
		Usage:       "print the manual page",
		Description: "The page is in roff, for man -l and for packages." + examples("bindery man"),
		Action:      exactly(0, func(c *cli.Context) error { return cliutil.WriteMan(p.stdout, c.App) }),
	}
}
