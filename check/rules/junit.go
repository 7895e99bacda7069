package rules

import (
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/printable"
)

// The elements of JUnit's XML report that CI systems read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Class   string        `xml:"classname,attr"`
		Name    string        `xml:"name,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
		Skipped *junitSkipped `xml:"skipped,omitempty"`
		Output  string        `xml:"system-out,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
)

// WriteJUnit writes the report as JUnit's XML: a test for each rule, which fails if a finding of at least the severity
// failOn is not waived. Other findings are its output, and rules that could not be checked are skipped.
func (r *Report) WriteJUnit(w io.Writer, failOn Severity) error {
	found := map[string][]Finding{}
	for _, f := range r.Findings {
		found[f.Rule] = append(found[f.Rule], f)
	}
	suite := junitSuite{Name: "bindery check " + r.Subject}
	for _, rule := range r.tested() {
		suite.Cases = append(suite.Cases, junitOf(rule, found[rule.ID], failOn))
	}
	for _, n := range r.NotRun {
		suite.Cases = append(suite.Cases, junitCase{Class: r.Subject, Name: n.Rule,
			Skipped: &junitSkipped{n.Reason}})
	}
	for i := range suite.Cases {
		c := &suite.Cases[i]
		c.Class = r.Subject
		if c.Failure != nil {
			suite.Failures++
		}
		if c.Skipped != nil {
			suite.Skipped++
		}
	}
	suite.Tests = len(suite.Cases)
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	err := enc.Encode(junitSuites{Tests: suite.Tests, Failures: suite.Failures, Skipped: suite.Skipped,
		Suites: []junitSuite{suite}})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, "\n")
	return err
}

// tested returns the rules that ran, and those about waivers that are broken.
func (r *Report) tested() []Rule {
	rules := slices.Clone(r.Rules)
	for _, rule := range waiverRules {
		if slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Rule == rule.ID }) {
			rules = append(rules, rule)
		}
	}
	return rules
}

func junitOf(rule Rule, found []Finding, failOn Severity) junitCase {
	c := junitCase{Name: rule.ID}
	var failed, other []string
	for _, f := range found {
		line := printable.Cell(f.Text())
		if f.Waived == "" && f.Severity.atLeast(failOn) {
			failed = append(failed, line)
		} else {
			other = append(other, line)
		}
	}
	if c.Output = strings.Join(other, "\n"); len(failed) > 0 {
		message := failed[0]
		if len(failed) > 1 {
			message = fmt.Sprintf("%s (and %d more)", message, len(failed)-1)
		}
		c.Failure = &junitFailure{Message: message, Type: rule.ID,
			Text: strings.Join(failed, "\n") + "\n" + rule.Title + " " + sentence(rule.Fix)}
	}
	return c
}

// Text returns the finding as one line: where it is, what it is about, and the message.
func (f Finding) Text() string {
	var parts []string
	if f.File != "" {
		parts = append(parts, f.Place())
	}
	if o := f.Object(); o != "" {
		parts = append(parts, o)
	}
	if f.Field != "" && !strings.Contains(f.Message, f.Field) {
		parts = append(parts, f.Field)
	}
	text := strings.Join(append(parts, f.Message), ": ")
	if f.Waived != "" {
		text += " [waived: " + f.Waived + "]"
	}
	return text
}
