package rules_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/check/rules"
)

func TestWaivers(t *testing.T) {
	s := subject("supported: true", "supported: false", "name: stable\n", "name: alpha_1\n")
	o := rules.Options{Profiles: []rules.Profile{rules.OLMv1}, FailOn: rules.Warning,
		Now: time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC)}
	for _, c := range []struct {
		name, text, want string
		passed           bool
	}{
		{"both are waived", `
- {rule: olmv1.install-mode, bundle: "acme.*", reason: "own namespace, agreed", until: 2027-01-31}
- {rule: olmv1.channel-name, reason: old clients, until: "2027-02-01"}`, "waived waived", true},
		{"one has expired", `
- {rule: olmv1.install-mode, reason: agreed, until: 2027-01-30}
- {rule: olmv1.channel-name, reason: old clients, until: 2027-02-01}`, "error waived waiver.expired", false},
		{"one is for another package", `
- {rule: olmv1.install-mode, package: other, reason: agreed, until: 2027-02-01}
- {rule: olmv1.channel-name, reason: old clients, until: 2027-02-01}`, "error waived waiver.unused", false},
	} {
		w, err := rules.ReadWaivers(strings.NewReader("waivers:"+c.text), "waivers.yaml")
		if err != nil {
			t.Fatal(err)
		}
		o.Waivers = w
		report := run(t, s, o)
		var got []string
		for _, f := range report.Findings {
			switch {
			case f.Waived != "":
				got = append(got, "waived")
			case strings.HasPrefix(f.Rule, "waiver."):
				got = append(got, f.Rule)
			default:
				got = append(got, string(f.Severity))
			}
		}
		slices.Sort(got)
		want := strings.Fields(c.want)
		slices.Sort(want)
		if !slices.Equal(got, want) || report.Passed != c.passed {
			t.Errorf("%s: %q, passed %v", c.name, got, report.Passed)
		}
		if report.Bundles[0].State != rules.Refused {
			t.Errorf("%s: a waiver does not change what the cluster does: %+v", c.name, report.Bundles[0])
		}
	}
}

func TestWrongWaivers(t *testing.T) {
	for text, want := range map[string]string{
		"waivers: [{rule: olmv1.dependency, until: 2027-01-31}]": "w.yaml:1: a waiver needs reason",
		"waivers:\n- {rule: olmv1.dependency, reason: x, until: tomorrow}": "w.yaml:2: until: \"tomorrow\" is " +
			"not a date",
		"waivers: [{rule: a, reason: x, until: 2027-01-31, bundel: y}]":      `waivers[0]: unknown field "bundel" (perhaps bundle)`,
		"waivers: [{rule: a, reason: x, until: 2027-01-31, package: \"[\"}]": "is not a pattern",
		"waiver: []": `w.yaml:1:9: unknown field "waiver"`,
	} {
		if _, err := rules.ReadWaivers(strings.NewReader(text), "w.yaml"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	w, err := rules.ReadWaivers(strings.NewReader("waivers: [{rule: olmv1.dependancy, reason: x, until: 2027-01-31}]"),
		"w.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, err = rules.NewRun(rules.Options{Profiles: every, Waivers: w}, rules.CatalogRules())
	if err == nil || !strings.Contains(err.Error(),
		`w.yaml:1: there is no rule "olmv1.dependancy", did you mean "olmv1.dependency"?`) {
		t.Error(err)
	}
}

func TestWrongRuleData(t *testing.T) {
	for text, want := range map[string]string{
		"allowed_olm_image_registry_prefix: [a]": "there is no rule data",
		"required_labels: x":                     "d.yaml:1:18: required_labels is a string, expected a list",
	} {
		if _, err := rules.ReadData(strings.NewReader(text), "d.yaml"); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
