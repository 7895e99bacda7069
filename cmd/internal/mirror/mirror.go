package mirror

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
)

// Command returns the group of commands that carry catalogs and their images to other registries.
func Command(p *option.Session) *cli.Command {
	return p.GroupCommand("mirror", "carry catalogs and the images that they name to a registry, or across an air gap",
		mirrorPlanCommand(p),
		mirrorRunCommand(p),
		mirrorPublishCommand(p),
		mirrorVerifyCommand(p),
		mirrorDeleteCommand(p),
		mirrorInventoryCommand(p),
		mirrorResourcesCommand(p),
	)
}

// mirrorHelp is the help paragraph about configurations.
const mirrorHelp = "The configuration is an ImageSetConfiguration of mirror.openshift.io/v2alpha1, as oc-mirror v2 " +
	"reads it: catalogs, and of\n" +
	"each the packages, channels and versions that are wanted. Without versions each channel's head is kept, of all " +
	"channels."

// imageSetFlags name the configuration and say how it is read.
func imageSetFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "configuration `FILE`"},
		&cli.BoolFlag{Name: "ignore-unsupported",
			Usage: "go on without the stanzas platform, helm and samples, which are not mirrored"},
		&cli.StringFlag{Name: "compat",
			Usage: "keep to what another `PROGRAM` does, including its losses (oc-mirror)"},
	}
}

// filterPolicyFlags say how catalogs are filtered.
func filterPolicyFlags() []cli.Flag {
	const group = "filter"
	return []cli.Flag{
		&cli.BoolFlag{Name: "with-dependencies", Category: group,
			Usage: "add the heads of channels that satisfy the dependencies of kept bundles"},
		&cli.BoolFlag{Name: "auto-default-channel", Category: group,
			Usage: "where the default channel is not kept, take the kept channel with the highest head"},
		&cli.BoolFlag{Name: "strict", Category: group,
			Usage: "fail before anything is copied if a package, channel, version or additional image is not there"},
	}
}
