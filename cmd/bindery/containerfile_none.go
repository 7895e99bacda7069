//go:build nobuildah

package main

import (
	"errors"

	"github.com/urfave/cli/v2"
)

// errNoContainerfiles is what a small build says.
var errNoContainerfiles = errors.New("this build does not support Containerfiles: use that of \"make build\"")

// buildContainerfileCommand refuses.
func (p *program) buildContainerfileCommand() *cli.Command {
	return &cli.Command{
		Name: "containerfile", Usage: "not in this build", ArgsUsage: "CONTEXT", Hidden: true, SkipFlagParsing: true,
		Action: func(*cli.Context) error { return errNoContainerfiles },
	}
}

// bundleContainerfileFlags has the flag that is refused.
func bundleContainerfileFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "containerfile", Usage: "not in this build", Hidden: true}}
}

func (p *program) buildBundleContainerfile(*cli.Context) error { return errNoContainerfiles }
