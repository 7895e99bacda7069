package mirror

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
	"github.com/operator-bindery/bindery/mirror"
)

// Command returns the group of commands that carry catalogs and their images to other registries.
func Command(p *option.Session) *cli.Command {
	return p.GroupCommand("mirror", "carry releases, catalogs and their images to a registry, or across an air gap",
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

// SetOptions name the configuration and say what is done with it. Each command has those of the flags that it needs.
type SetOptions struct {
	// Request has the values that need no reading; [SetOptions.Prepare] reads the others.
	Request             mirror.Options
	CompatWith          string
	ignoreUnsupported   bool
	catalogs, installed cli.StringSlice
	// From and Workspace are where a run reads and where its files are.
	From, Workspace string
	// About releases.
	key, crossChannel string
	sources           cli.StringSlice
	// About charts.
	helmValues, helmAPIs cli.StringSlice
}

func (o *SetOptions) flags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "config", Aliases: []string{"c"}, Usage: "configuration `FILE`", Destination: &o.Request.Config},
		o.IgnoreUnsupportedFlag(),
		&cli.StringFlag{Name: "compat", Destination: &o.CompatWith,
			Usage: "keep to what another `PROGRAM` does, including its losses (oc-mirror)"},
	}
}

// IgnoreUnsupportedFlag returns --ignore-unsupported, which is accepted and has no effect: no stanza is refused.
func (o *SetOptions) IgnoreUnsupportedFlag() cli.Flag {
	return &cli.BoolFlag{Name: "ignore-unsupported", Destination: &o.ignoreUnsupported, Hidden: true,
		Usage: "no effect: charts are mirrored, and samples are a warning"}
}

// filterFlags say how catalogs are filtered.
func (o *SetOptions) filterFlags() []cli.Flag {
	const group = "filter"
	return []cli.Flag{
		&cli.BoolFlag{Name: "with-dependencies", Category: group, Destination: &o.Request.Filter.Dependencies,
			Usage: "add the heads of channels that satisfy the dependencies of kept bundles"},
		&cli.BoolFlag{Name: "auto-default-channel", Category: group, Destination: &o.Request.Filter.AutoDefaultChannel,
			Usage: "where the default channel is not kept, take the kept channel with the highest head"},
		&cli.BoolFlag{Name: "strict", Category: group, Destination: &o.Request.Filter.Strict,
			Usage: "fail before anything is copied if a package, channel, version or additional image is not there"},
	}
}

// sourceFlags say where catalogs are read, and which versions clusters have.
func (o *SetOptions) sourceFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringSliceFlag{Name: "catalog", Destination: &o.catalogs,
			Usage: "read `REF=SOURCE`: the catalog SOURCE in place of the catalog REF; can be repeated"},
		&cli.StringSliceFlag{Name: "installed", Destination: &o.installed,
			Usage: "look only for the way of `PACKAGE=VERSION` to the kept head; can be repeated"},
	}
}
