package rules

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/nearest"
)

// Severity says how bad it is to break a rule.
type Severity string

// The severities. The cluster or pipeline of the profile refuses what breaks a rule of severity Error. A note is nothing
// to mend, and no check fails for it.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Note    Severity = "note"
)

// atLeast reports whether a severity is as bad as another one, or worse.
func (s Severity) atLeast(o Severity) bool { return s == Error || s == Warning && o == Warning }

// Profile names a set of rules: those of one cluster component or pipeline.
type Profile string

// The profiles.
const (
	OPM      Profile = "opm"      // opm validate, opm alpha bundle validate
	OLMv1    Profile = "olmv1"    // operator-controller and catalogd
	Konflux  Profile = "konflux"  // the tasks validate-fbc and fbc-target-index-pruning-check
	Conforma Profile = "conforma" // the packages olm, labels and base_image_registries of its release policy

	// The operator pipelines, by the kind of repository to which a submission is sent.
	Community   Profile = "community"
	Certified   Profile = "certified"
	Marketplace Profile = "marketplace"
)

// Pipelines returns the profiles of the operator pipelines.
func Pipelines() []Profile { return []Profile{Community, Certified, Marketplace} }

// Profiles returns all profiles.
func Profiles() []Profile {
	return []Profile{OPM, OLMv1, Konflux, Conforma, Community, Certified, Marketplace}
}

// Usage says what the rules of the profile find.
func (p Profile) Usage() string {
	switch p {
	case OPM:
		return "what opm's validate commands refuse"
	case OLMv1:
		return "what OLM v1 can install, and what catalogd serves"
	case Konflux:
		return "what Konflux' validate-fbc and pruning check refuse in a catalog image"
	case Conforma:
		return "what Conforma's release policy refuses in bundle and catalog images"
	case Community:
		return "what the operator pipeline refuses in a submission of community operators"
	case Certified:
		return "the same of certified operators"
	case Marketplace:
		return "the same of operators of the Red Hat Marketplace"
	}
	return ""
}

// ParseProfile returns the profile of a name.
func ParseProfile(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if string(p) == name {
			return p, nil
		}
		names = append(names, string(p))
	}
	if near, ok := nearest.Name(name, names); ok {
		return "", fmt.Errorf("unknown profile %q, did you mean %q?", name, near)
	}
	return "", fmt.Errorf("unknown profile %q, expected one of %s", name, strings.Join(names, ", "))
}

// Scope is what a rule looks at.
type Scope string

// The scopes of rules.
const (
	OnCatalog Scope = "catalog"
	OnBundle  Scope = "bundle"
	OnImage   Scope = "image"
	// An operator is a directory with bundles, as a repository of submissions has it; a repository is the whole of it,
	// and a request a change of it.
	OnOperator   Scope = "operator"
	OnRepository Scope = "repository"
	OnRequest    Scope = "request"
)

// Rule describes one rule.
type Rule struct {
	// ID is stable: scripts, waivers and reports name the rule by it.
	ID       string    `json:"id"`
	Severity Severity  `json:"severity"`
	Profiles []Profile `json:"profiles"`
	Scopes   []Scope   `json:"scopes"`
	// Title is a sentence that says what the rule demands, Fix one that says what to do if it is broken.
	Title string `json:"title"`
	Fix   string `json:"fix"`
	// Data is the key of the rule data that the rule needs; empty if it needs none.
	Data string `json:"data,omitempty"`
}

// In reports whether the rule belongs to a profile.
func (r Rule) In(p Profile) bool { return slices.Contains(r.Profiles, p) }

// On reports whether the rule looks at what has the scope.
func (r Rule) On(s Scope) bool { return slices.Contains(r.Scopes, s) }

// Check is a rule with the function that finds where a subject breaks it. A function with several rules is called once
// if one of them is wanted; what it emits of the others is dropped.
type Check[T any] struct {
	Rules []Rule
	Find  func(ctx context.Context, subject T, emit Emit)
}

// Emit reports a finding. Its Rule is set by the caller; severity and fix are those of the rule.
type Emit func(Finding)

// RulesOf returns the rules of checks in their order.
func RulesOf[T any](checks []Check[T]) []Rule {
	var out []Rule
	for _, c := range checks {
		out = append(out, c.Rules...)
	}
	return out
}

// Each calls the functions of the checks of which the run wants a rule.
func Each[T any](ctx context.Context, r *Run, checks []Check[T], subject T) error {
	for _, c := range checks {
		if !slices.ContainsFunc(c.Rules, func(rule Rule) bool { return r.Wants(rule) }) {
			continue
		}
		c.Find(ctx, subject, r.emitOf(c.Rules))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}
