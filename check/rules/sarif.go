package rules

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"path"
	"strings"

	"github.com/operator-bindery/bindery/internal/printable"
	"github.com/operator-bindery/bindery/internal/redact"
)

// The part of SARIF 2.1.0 (OASIS standard) that code scanning services read.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version,omitempty"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID      string          `json:"id"`
		Short   sarifText       `json:"shortDescription"`
		Help    sarifText       `json:"help"`
		Default sarifDefault    `json:"defaultConfiguration"`
		Tags    sarifProperties `json:"properties"`
	}
	sarifProperties struct {
		Tags []Profile `json:"tags"`
	}
	sarifDefault struct {
		Level string `json:"level"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string             `json:"ruleId"`
		Level        string             `json:"level"`
		Message      sarifText          `json:"message"`
		Locations    []sarifLocation    `json:"locations"`
		Suppressions []sarifSuppression `json:"suppressions,omitempty"`
	}
	sarifSuppression struct {
		Kind          string `json:"kind"`
		Justification string `json:"justification"`
	}
	sarifLocation struct {
		Physical *sarifPhysical `json:"physicalLocation,omitempty"`
		Logical  []sarifLogical `json:"logicalLocations,omitempty"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int `json:"startLine"`
		StartColumn int `json:"startColumn,omitempty"`
	}
	sarifLogical struct {
		FullyQualifiedName string `json:"fullyQualifiedName"`
	}
)

// WriteSARIF writes the report as a SARIF 2.1.0 log, with the files as the report has them (see [Report.Below]).
// version is that of the program.
func (r *Report) WriteSARIF(w io.Writer, version string) error {
	driver := sarifDriver{Name: "bindery", Version: version,
		InformationURI: "https://github.com/operator-bindery/bindery", Rules: []sarifRule{}}
	for _, rule := range r.tested() {
		driver.Rules = append(driver.Rules, sarifRule{ID: rule.ID, Short: sarifText{rule.Title},
			Help: sarifText{sentence(rule.Fix)}, Default: sarifDefault{string(rule.Severity)},
			Tags: sarifProperties{rule.Profiles}})
	}
	run := sarifRun{Tool: sarifTool{driver}, Results: []sarifResult{}}
	for _, f := range r.Findings {
		result := sarifResult{RuleID: f.Rule, Level: string(f.Severity), Message: sarifText{f.Message}}
		var at sarifLocation
		if f.File != "" && !f.InImage {
			at.Physical = &sarifPhysical{Artifact: sarifArtifact{uri(f.File)}}
			if f.Line > 0 {
				at.Physical.Region = &sarifRegion{f.Line, f.Column}
			}
		}
		if o := f.Object(); o != "" {
			at.Logical = []sarifLogical{{o}}
		}
		if f.InImage {
			at.Logical = append(at.Logical, sarifLogical{f.Place()})
		}
		if at.Physical == nil && at.Logical == nil {
			at.Logical = []sarifLogical{{r.Subject}}
		}
		result.Locations = []sarifLocation{at}
		if f.Waived != "" {
			result.Suppressions = []sarifSuppression{{"external", f.Waived}}
		}
		run.Results = append(run.Results, result)
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetIndent("", "  ")
	err := enc.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
	if err != nil {
		return err
	}
	_, err = w.Write(printable.JSON(redact.JSON(b.Bytes())))
	return err
}

// uri escapes a file name for a relative reference (RFC 3986), or makes a file URI of an absolute one (RFC 8089).
func uri(name string) string {
	u := url.URL{Path: name}
	if path.IsAbs(name) {
		u.Scheme = "file"
		return u.String()
	}
	return strings.TrimPrefix(u.EscapedPath(), "./")
}

// sentence makes a sentence of a fix.
func sentence(fix string) string {
	if fix == "" {
		return fix
	}
	return strings.ToUpper(fix[:1]) + fix[1:] + "."
}
