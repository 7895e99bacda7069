package checkup_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/check/checkup"
	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/check/rules"
)

// table returns the rules of a profile as docs/guides/check.md has them.
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

func TestDocumentedRules(t *testing.T) {
	const name = "../../docs/guides/check.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range rules.Profiles() {
		if p == rules.Community {
			continue // its table would be that of opm with four more rows
		}
		if !strings.Contains(string(text), table(p)) {
			t.Errorf("%s lacks the rules of %s:\n%s", name, p, table(p))
		}
	}
	day, err := time.Parse(time.DateOnly, openshift.Date)
	if date := day.Format("2 January 2006"); err != nil || !strings.Contains(string(text), date) {
		t.Errorf("%s does not say that the versions of OpenShift are those of %s: %v", name, date, err)
	}
	for _, r := range checkup.Rules() {
		if !strings.Contains(string(text), "`"+r.ID+"`") {
			t.Errorf("%s lacks %s", name, r.ID)
		}
	}
}
