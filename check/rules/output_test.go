package rules_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/check/rules"
)

// Names come from outside: what would change the text around them on a terminal or a page is escaped.
func TestOutputsEscapeWhatCannotBeSeen(t *testing.T) {
	report := run(t, subject("name: stable\n", "name: \"a\\u202Eb\\e[31m<&\"\n"),
		rules.Options{Profiles: []rules.Profile{rules.OLMv1}, FailOn: rules.Warning})
	if len(report.Findings) == 0 {
		t.Fatal("nothing is found")
	}
	var sarif, junit bytes.Buffer
	if err := report.WriteSARIF(&sarif, "v1"); err != nil {
		t.Fatal(err)
	}
	if err := report.WriteJUnit(&junit, rules.Warning); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{sarif.String(), junit.String()} {
		if strings.ContainsAny(out, "\u202e\x1b") {
			t.Errorf("%q", out)
		}
	}
	var log struct {
		Runs []struct {
			Results []struct{ RuleID, Level string }
		}
	}
	if err := json.Unmarshal(sarif.Bytes(), &log); err != nil || log.Runs[0].Results[0].RuleID != "olmv1.channel-name" {
		t.Errorf("%v %+v", err, log)
	}
	var suites struct {
		Failures int `xml:"failures,attr"`
	}
	if err := xml.Unmarshal(junit.Bytes(), &suites); err != nil || suites.Failures != 1 {
		t.Errorf("%v %+v", err, suites)
	}
}
