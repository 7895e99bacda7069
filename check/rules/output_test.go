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

// A finding is one command of a workflow, whatever its text is: what would end a value or begin another command is escaped.
// The runner decodes these escapes.
func TestGitHub(t *testing.T) {
	report := rules.Report{Findings: []rules.Finding{
		{Rule: "a:b,c", Severity: rules.Error, File: "x,y:z%.yaml", Line: 3, Column: 7, Message: "50% of\n::warning::this\r", Fix: "mend it"},
		{Rule: "r", Severity: rules.Warning, File: "f.yaml", Bundle: "etcd.v1", Message: "m", Fix: "see the message"},
		{Rule: "r", Severity: rules.Note, Package: "::add-mask::etcd", Message: "m\x1b[31m"},
		{Rule: "r", Severity: rules.Error, File: "manifests/x.yaml", Line: 1, Bundle: "etcd.v1", Image: "a.example.com/b:v1", InImage: true, Message: "m"},
		{Rule: "r", Severity: rules.Error, Message: "m", Waived: "known"},
	}}
	const want = "::error title=a%3Ab%2Cc,file=x%2Cy%3Az%25.yaml,line=3,col=7::x,y:z%25.yaml:3:7: 50%25 of%0A::warning::this\\x0d%0Afix: mend it\n" +
		"::warning title=r,file=f.yaml::f.yaml: etcd.v1: m\n" +
		"::notice title=r::::add-mask::etcd: m\\x1b[31m\n" +
		"::error title=r::a.example.com/b:v1: manifests/x.yaml:1: etcd.v1: m\n"
	var b bytes.Buffer
	if err := report.WriteGitHub(&b); err != nil || b.String() != want {
		t.Errorf("%v\n%s\nwanted\n%s", err, b.String(), want)
	}
}
