package check

import (
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/declcfg/rules"
)

// checkFlagProfiles are the flags of "check" that have an effect only on the rules of some profiles.
var checkFlagProfiles = []struct {
	flag     string
	profiles []rules.Profile
}{
	{"cert-provider", []rules.Profile{rules.OLMv1}},
	{"gate", []rules.Profile{rules.OLMv1}},
	{"upgrades", []rules.Profile{rules.OLMv1}},
	{"from", []rules.Profile{rules.OLMv1}},
	{"kube-version", []rules.Profile{rules.OLMv1}},
	{"rule-data", []rules.Profile{rules.Konflux, rules.Conforma}},
	{"pull", []rules.Profile{rules.OLMv1, rules.Konflux, rules.Conforma}},
	{"ocp-version", []rules.Profile{rules.Konflux}},
	{"released", []rules.Profile{rules.Konflux, rules.Conforma}},
	{"snapshot", []rules.Profile{rules.Conforma}},
}

// checkFlagValues refuses empty values.
func checkFlagValues(c *cli.Context) error {
	for _, name := range []string{"waivers", "rule-data", "explain", "kube-version", "ocp-version", "released", "snapshot", "from",
		"artifacts", "output"} {
		if c.IsSet(name) && c.String(name) == "" {
			return cmdline.Usagef("--%s is empty", name)
		}
	}
	for _, name := range []string{"profile", "skip", "gate"} {
		if slices.Contains(c.StringSlice(name), "") {
			return cmdline.Usagef("--%s is empty", name)
		}
	}
	return nil
}

// checkFlagEffects refuses flags without an effect on the rules of the profiles.
func checkFlagEffects(c *cli.Context, profiles []rules.Profile) error {
	for _, f := range checkFlagProfiles {
		if c.IsSet(f.flag) && !slices.ContainsFunc(profiles, func(p rules.Profile) bool {
			return slices.Contains(f.profiles, p)
		}) {
			return cmdline.Usagef("--%s has no effect without --profile %s", f.flag,
				strings.Join(asStrings(f.profiles), " or "))
		}
	}
	return nil
}

// listFlagEffects refuses flags without an effect on the answer of --list or --explain.
func listFlagEffects(c *cli.Context) error {
	with := "list"
	names := []string{"skip", "waivers", "fail-on", "artifacts"}
	if c.IsSet("explain") {
		with, names = "explain", append(names, "profile")
	}
	for _, f := range checkFlagProfiles {
		names = append(names, f.flag)
	}
	for _, name := range names {
		if c.IsSet(name) {
			return cmdline.Usagef("--%s has no effect with --%s", name, with)
		}
	}
	return nil
}

// asStrings returns values as strings.
func asStrings[T ~string](all []T) []string {
	var out []string
	for _, v := range all {
		out = append(out, string(v))
	}
	return out
}
