//go:build nobuildah

package containerfile

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
)

// ErrNoContainerfiles is returned by programs built without buildah.
var ErrNoContainerfiles = errors.New("this build does not support Containerfiles: use that of \"make build\"")

// SmallBuild tells that this build has neither Containerfiles nor the podman store.
const SmallBuild = true

// BuildContainerfileCommand returns a command that fails.
func BuildContainerfileCommand(*option.Session) *cli.Command {
	return &cli.Command{
		Name: "containerfile", Usage: "not in this build", ArgsUsage: "CONTEXT", Hidden: true, SkipFlagParsing: true,
		Action: func(*cli.Context) error { return ErrNoContainerfiles },
	}
}
