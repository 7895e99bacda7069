package rules_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/check/rules"
)

// A finding has the column of its value, in text and in SARIF.
func TestColumns(t *testing.T) {
	s := subject("defaultChannel: stable", "defaultChannel: other")
	report := run(t, s, rules.Options{Profiles: []rules.Profile{rules.OPM}, Data: data(t), FailOn: rules.Warning})
	if len(report.Findings) == 0 || report.Findings[0].Place() != "acme/catalog.yaml:4:17" {
		t.Fatalf("%+v", report.Findings)
	}
	var b bytes.Buffer
	if err := report.WriteSARIF(&b, "v1"); err != nil || !strings.Contains(b.String(), `"startColumn": 17`) {
		t.Errorf("%v\n%s", err, b.String())
	}
}
