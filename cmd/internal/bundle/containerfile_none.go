//go:build nobuildah

package bundle

import (
	"context"

	"github.com/urfave/cli/v2"

	containerfilecmd "github.com/operator-bindery/bindery/cmd/internal/containerfile"
	"github.com/operator-bindery/bindery/cmd/internal/option"
)

// containerfileFlags returns the flag, which is refused.
func (o *buildOptions) containerfileFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "containerfile", Usage: "not in this build", Hidden: true, Destination: &o.containerfile}}
}

func buildBundleContainerfile(context.Context, *option.Session, *buildOptions, []string) error {
	return containerfilecmd.ErrNoContainerfiles
}
