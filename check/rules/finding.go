package rules

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/internal/problem"
)

// Finding is a place where a rule is broken. Only Rule, Severity and Message are always set.
type Finding struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	// Target is the directory of the operator, the bundle or the catalog that the finding is about, in a repository of
	// submissions; Package and Bundle are then the names of the operator's and the bundle's directories.
	Target  string `json:"target,omitempty"`
	Package string `json:"package,omitempty"`
	Channel string `json:"channel,omitempty"`
	Bundle  string `json:"bundle,omitempty"`
	// File is relative to the root of the catalog, bundle or repository, or with InImage to the root of Image. Line and Column count
	// from 1; 0 means that they are not known.
	File   string `json:"file,omitempty"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Field  string `json:"field,omitempty"`
	// Image is the image that the finding is about, if it is not the one that is checked.
	Image string `json:"image,omitempty"`
	// InImage is true if File is a file of Image.
	InImage bool   `json:"inImage,omitempty"`
	Message string `json:"message"`
	Fix     string `json:"fix,omitempty"`
	// Waived has the reason of the waiver that accepts the finding; it is empty if none does.
	Waived string `json:"waived,omitempty"`

	path []any // of the value in the blob at Line, which is replaced by the value's line

	first string // the bundle that is taken in place of Bundle
}

// Place returns "file:line:column", "file:line", "file", or what else says where the finding is. A file of an image
// follows the image: "image: file:line".
func (f Finding) Place() string {
	switch {
	case f.InImage:
		image := f.Image
		f.InImage, f.Image = false, ""
		return image + ": " + f.Place()
	case f.File != "":
		return problem.Place{File: f.File, Line: f.Line, Column: f.Column}.String()
	}
	return f.Object()
}

// Remedy returns what to do; it is empty if the message says it.
func (f Finding) Remedy() string {
	if f.Fix == "see the message" {
		return ""
	}
	return f.Fix
}

// Object returns package, channel and bundle, separated by slashes, or the image.
func (f Finding) Object() string {
	var parts []string
	for _, s := range []string{f.Package, f.Channel, f.Bundle} {
		if s != "" {
			parts = append(parts, s)
		}
	}
	return cmp.Or(strings.Join(parts, "/"), f.Image, f.Target)
}

func (f Finding) compare(o Finding) int {
	return cmp.Or(cmp.Compare(f.Target, o.Target), cmp.Compare(f.Package, o.Package), cmp.Compare(f.Channel, o.Channel),
		cmp.Compare(f.Bundle, o.Bundle), cmp.Compare(f.File, o.File), cmp.Compare(f.Line, o.Line),
		cmp.Compare(f.Rule, o.Rule), cmp.Compare(f.Field, o.Field), cmp.Compare(f.Image, o.Image),
		cmp.Compare(f.Message, o.Message))
}

// Report is the result of a run. It is not changed afterwards.
type Report struct {
	// Subject is what was checked, as the user named it, Kind what it is. Root is the directory from which its files are
	// named; empty if it is no directory.
	Subject  string    `json:"subject"`
	Root     string    `json:"-"`
	Kind     Scope     `json:"kind"`
	Profiles []Profile `json:"profiles"`
	// KubeVersion is the version of Kubernetes that was assumed; empty without the profile olmv1.
	KubeVersion string `json:"kubeVersion,omitempty"`
	// Title is the title that the pipeline gives to a pull request with the changes that were checked.
	Title string `json:"title,omitempty"`
	// Passed is false if a rule is broken whose severity makes the check fail.
	Passed   bool `json:"passed"`
	Errors   int  `json:"errors"`
	Warnings int  `json:"warnings"`
	Notes    int  `json:"notes,omitempty"`
	Waived   int  `json:"waived"`
	// Findings are sorted by target, package, channel, bundle, file, line and rule.
	Findings []Finding `json:"findings"`
	// More is the number of further findings of each rule, beyond those that a report holds.
	More map[string]int `json:"more,omitempty"`
	// Rules are those that ran, NotRun those that belong to the profiles and could not.
	Rules  []Rule   `json:"rules"`
	NotRun []notRun `json:"notRun,omitempty"`
	// Bundles say of each bundle of a catalog, or of the bundle, whether OLM v1 installs it; empty without the profile
	// olmv1.
	Bundles []Installability `json:"bundles,omitempty"`
	// Upgrades are what OLM v1 says of upgrades, if they were judged.
	Upgrades *Upgrades `json:"upgrades,omitempty"`
	// OpenShift says which versions of OpenShift take the bundle, or each bundle; empty without a profile of an operator
	// pipeline.
	OpenShift []openshift.Support `json:"openshift,omitempty"`
}

// Below returns the report with the files of its findings below dir, a path with slashes. It is where the catalog or
// bundle is, so that files are named from the directory in which the program was started; it may be empty.
func (r *Report) Below(dir string) *Report {
	return r.Named(func(file string) string { return path.Join(dir, file) })
}

// Named returns the report with other names of the files that are checked. The file of a waiver is not in what is
// checked, nor is that of an image.
func (r *Report) Named(name func(file string) string) *Report {
	out := *r
	out.Findings = slices.Clone(r.Findings)
	for i := range out.Findings {
		if f := &out.Findings[i]; f.File != "" && !f.InImage && !strings.HasPrefix(f.Rule, "waiver.") {
			f.File = name(f.File)
		}
	}
	return &out
}

// notRun is a rule that could not be checked.
type notRun struct {
	Rule   string `json:"rule"`
	Reason string `json:"reason"`
}
