package main

import "github.com/urfave/cli/v2"

// bundleCommand returns the group of commands for one bundle. opm has it below "alpha".
func (p *program) bundleCommand() *cli.Command {
	return p.groupCommand("bundle", "generate, validate, build, render and unpack operator bundles",
		p.bundleGenerateCommand(),
		p.buildBundleCommand("bundle build"),
		p.bundleUnpackCommand(),
		p.bundleManifestsCommand(),
		p.bundleExtractCommand(),
		p.bundleUnpackJobCommand(),
		p.bundleValidateCommand(),
	)
}
