package check

import (
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/cmd/internal/cmdline"
	"github.com/operator-bindery/bindery/cmd/internal/option"
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
	{"rule-data", []rules.Profile{rules.Konflux, rules.Conforma, rules.Community, rules.Certified,
		rules.Marketplace}},
	{"all-bundles", rules.Pipelines()},
	{"changed-since", rules.Pipelines()},
	{"changed", rules.Pipelines()},
	{"pull", []rules.Profile{rules.OLMv1, rules.Konflux, rules.Conforma}},
	{"ocp-version", []rules.Profile{rules.Konflux}},
	{"released", []rules.Profile{rules.Konflux, rules.Conforma}},
	{"snapshot", []rules.Profile{rules.Conforma}},
}

// checkFlagEffects refuses flags without an effect on the rules of the profiles.
func checkFlagEffects(p *option.Session, profiles []rules.Profile) error {
	for _, f := range checkFlagProfiles {
		if p.Given(f.flag) && !slices.ContainsFunc(profiles, func(profile rules.Profile) bool {
			return slices.Contains(f.profiles, profile)
		}) {
			return cmdline.Usagef("--%s has no effect without --profile %s", f.flag,
				strings.Join(asStrings(f.profiles), " or "))
		}
	}
	return nil
}

// listFlagEffects refuses flags without an effect on the answer of --list or --explain.
func listFlagEffects(p *option.Session) error {
	with := "list"
	names := []string{"skip", "waivers", "fail-on", "artifacts"}
	if p.Given("explain") {
		with, names = "explain", append(names, "profile")
	}
	for _, f := range checkFlagProfiles {
		names = append(names, f.flag)
	}
	for _, name := range names {
		if p.Given(name) {
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
