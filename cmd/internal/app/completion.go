package app

import (
	"context"
	"io"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/cmd/internal/program"
)

func completionCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name:      "completion",
		Usage:     "print a completion script for a shell",
		ArgsUsage: "bash|zsh|fish",
		Description: "To load it into the running bash: source <(bindery completion bash)" + program.Examples(
			"bindery completion bash", "bindery completion zsh", "bindery completion fish"),
		Action: program.Exactly(1, p.Action(func(_ context.Context, args []string) error {
			script, err := cmdline.Script(args[0], p.Command.App.Name)
			if err != nil {
				return err
			}
			_, err = io.WriteString(p.Stdout, script)
			return err
		})),
	}
}

// completeCommand returns the hidden command that completion scripts call.
func completeCommand(p *option.Session) *cli.Command {
	return &cli.Command{
		Name: "__complete", Hidden: true, SkipFlagParsing: true,
		Usage: "complete a command line",
		Action: p.Action(func(ctx context.Context, args []string) error {
			return cmdline.Complete(p.Command.App, args, catalogNames(p, ctx)).Write(p.Stdout)
		}),
	}
}
