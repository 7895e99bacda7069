package checkup_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/check/checkup"
	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/check/rules"
)

// table returns the rules of a profile as docs/reference/rules.md has them.
func table(p rules.Profile) string {
	var b strings.Builder
	b.WriteString("| rule | severity | on | demands |\n|---|---|---|---|\n")
	for _, r := range checkup.Rules() {
		if !r.In(p) || strings.HasPrefix(r.ID, "waiver.") {
			continue
		}
		var scopes []string
		for _, s := range r.Scopes {
			scopes = append(scopes, string(s))
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r.ID, r.Severity, strings.Join(scopes, ", "), r.Title)
	}
	return b.String()
}

// pipelines returns the rules of the operator pipelines.
func pipelines() string {
	var b strings.Builder
	b.WriteString("| rule | severity | on | profiles | demands |\n|---|---|---|---|---|\n")
	for _, r := range checkup.Rules() {
		if strings.HasPrefix(r.ID, "waiver.") || !slices.ContainsFunc(rules.Pipelines(), r.In) {
			continue
		}
		in := "all"
		if len(r.Profiles) < len(rules.Pipelines()) {
			var names []string
			for _, p := range r.Profiles {
				names = append(names, string(p))
			}
			in = strings.Join(names, ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", r.ID, r.Severity, r.Scopes[0], in, r.Title)
	}
	return b.String()
}

func TestDocumentedRules(t *testing.T) {
	const name = "../../docs/reference/rules.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range rules.Profiles() {
		if slices.Contains(rules.Pipelines(), p) {
			continue // they have most rules in common
		}
		if !strings.Contains(string(text), table(p)) {
			t.Errorf("%s lacks the rules of %s:\n%s", name, p, table(p))
		}
	}
	guide, err := os.ReadFile("../../docs/guides/check.md")
	if err != nil {
		t.Fatal(err)
	}
	day, err := time.Parse(time.DateOnly, openshift.Date)
	if date := day.Format("2 January 2006"); err != nil || !strings.Contains(string(guide), date) {
		t.Errorf("the guide does not say that the versions of OpenShift are those of %s: %v", date, err)
	}
	if !strings.Contains(string(text), pipelines()) {
		t.Errorf("%s lacks the rules of the pipelines:\n%s", name, pipelines())
	}
}
