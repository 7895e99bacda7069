//go:build nobuildah

package main

import (
	"errors"

	"github.com/urfave/cli/v2"
)

// errNoContainerfiles is what a small build says.
var errNoContainerfiles = errors.New("this build of bindery has no Containerfiles: it was made with the tag nobuildah, take one without")

// buildContainerfileCommand refuses.
func (p *program) buildContainerfileCommand() *cli.Command {
	return &cli.Command{
		Name: "containerfile", Usage: "not in this build", ArgsUsage: "CONTEXT", Hidden: true, SkipFlagParsing: true,
		Action: func(*cli.Context) error { return errNoContainerfiles },
	}
}

func bundleContainerfileFlags() []cli.Flag { return nil }

func (p *program) buildBundleContainerfile(*cli.Context) error { return errNoContainerfiles }
