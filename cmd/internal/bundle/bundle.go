package bundle

import (
	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/option"
)

// Command returns the group of commands for one bundle. opm has it below "alpha".
func Command(p *option.Session) *cli.Command {
	return p.GroupCommand("bundle", "generate, validate, build, render and unpack operator bundles",
		bundleGenerateCommand(p),
		BuildBundleCommand(p, "bundle build"),
		bundleUnpackCommand(p),
		bundleManifestsCommand(p),
		bundleExtractCommand(p),
		bundleUnpackJobCommand(p),
		bundleValidateCommand(p),
	)
}
