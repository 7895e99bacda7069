package cmdline

import (
	"slices"

	"github.com/urfave/cli/v2"
)

// maxCommon is the number of flags that --help shows at most; --help-all shows all.
const maxCommon = 15

// firstNames are flags that nearly all users of a command that has them need; secondNames are those that many need.
var (
	firstNames = []string{"tag", "push", "load", "to", "dry-run", "output", "from-index", "bundles", "http-addr",
		"authfile"}
	// secondNames come after the command's own flags.
	secondNames = []string{"platform", "base", "digest-file", "sign-key", "sign-keyless", "sbom", "key", "trusted-key", "trusted-identity", "compression",
		"authfile", "jobs", "lock"}
	// sharedGroups are the categories of flags that many commands have.
	sharedGroups = []string{"registry", "limits for reading images", "destination", "signing", "keyless signing", "what", "image",
		"content",
		"execution", "work", "result", "supply chain", "account", "accepted for compatibility with opm"}
)

// common returns the flags that --help shows, in the order of flags: all if there are at most [maxCommon], else the
// named ones and the command's own, up to that number.
func common(flags []cli.Flag) []cli.Flag {
	shown := slices.DeleteFunc(slices.Clone(flags), func(f cli.Flag) bool { return !visible(f) })
	if len(shown) <= maxCommon {
		return shown
	}
	named := func(names []string) func(cli.Flag) bool {
		return func(f cli.Flag) bool {
			return slices.ContainsFunc(f.Names(), func(n string) bool { return slices.Contains(names, n) })
		}
	}
	own := func(f cli.Flag) bool { return !slices.Contains(sharedGroups, category(f)) }
	var chosen []cli.Flag
	for _, wanted := range []func(cli.Flag) bool{named(firstNames), own, named(secondNames)} {
		for _, f := range shown {
			if wanted(f) && !slices.Contains(chosen, f) && len(chosen) < maxCommon {
				chosen = append(chosen, f)
			}
		}
	}
	return slices.DeleteFunc(shown, func(f cli.Flag) bool { return !slices.Contains(chosen, f) })
}
