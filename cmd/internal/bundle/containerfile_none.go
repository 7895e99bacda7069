//go:build nobuildah

package bundle

import (
	"github.com/urfave/cli/v2"

	containerfilecmd "github.com/operator-bindery/bindery/cmd/internal/containerfile"
	"github.com/operator-bindery/bindery/cmd/internal/option"
)

// bundleContainerfileFlags returns the flag, which is refused.
func bundleContainerfileFlags() []cli.Flag {
	return []cli.Flag{&cli.StringFlag{Name: "containerfile", Usage: "not in this build", Hidden: true}}
}

func buildBundleContainerfile(*option.Session, *cli.Context) error {
	return containerfilecmd.ErrNoContainerfiles
}
