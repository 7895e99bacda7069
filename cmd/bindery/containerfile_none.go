//go:build nobuildah

package main

import (
	"errors"

	"github.com/urfave/cli/v2"
)

// errNoContainerfiles is returned by programs built without buildah.
var errNoContainerfiles = errors.New("this build does not support Containerfiles: use that of \"make build\"")

// smallBuild tells that this build has neither Containerfiles nor the podman store.
const smallBuild = true

// buildContainerfileCommand returns a command that fails.
func (p *program) buildContainerfileCommand() *cli.Command {
	return &cli.Command{
		Name: "containerfile", Usage: "not in this build", ArgsUsage: "CONTEXT", Hidden: true, SkipFlagParsing: true,
		Action: func(*cli.Context) error { return errNoContainerfiles },
	}
}

// bundleContainerfileFlags returns the flag, which is refused.
func bundleContainerfileFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "containerfile", Usage: "not in this build", Hidden: true}}
}

func (p *program) buildBundleContainerfile(*cli.Context) error { return errNoContainerfiles }
