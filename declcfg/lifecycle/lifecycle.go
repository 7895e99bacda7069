// Package lifecycle reads the blobs of catalogs that say how long the versions of an operator are supported, and on which
// platforms. Red Hat's catalogs have one for each package; the schema is that of the enhancement proposal
// lifecycle-and-compatibility of OpenShift.
package lifecycle

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/operator-bindery/bindery/internal/lazyregexp"
	"github.com/operator-bindery/bindery/internal/shape"
)

// Schema is that of the blobs.
const Schema = "io.openshift.operators.lifecycles.v1alpha1"

// openShift is the name of the platform whose versions are minor versions.
const openShift = "openshift"

// Package has the versions of a package. Names and dates are as written.
type Package struct {
	Package  string    `json:"package"`
	Versions []Version `json:"versions"`
}

// Version is a minor version of an operator, with the phases of its support in their order.
type Version struct {
	// Name is the version, as 4.12.
	Name      string     `json:"name"`
	Phases    []Phase    `json:"phases"`
	Platforms []Platform `json:"platformCompatibility,omitempty"`
}

// Phase is a phase of the support. Both days, as 2027-01-31, belong to it.
type Phase struct {
	Name      string `json:"name"`
	StartDate string `json:"startDate"`
	EndDate   string `json:"endDate"`
}

// Platform has the versions of a platform that a version of the operator is for.
type Platform struct {
	Name     string   `json:"name"`
	Versions []string `json:"versions"`
}

// Problem is a mistake in a blob. Path leads to the value: names of fields and indices of lists.
type Problem struct {
	Path    []any
	Message string
}

// maxProblems limits how many problems of a blob are reported.
const maxProblems = 50

var blobShape = shape.For[Package]()

// Read reads a blob, as [declcfg.Meta] has it, and reports its mistakes. Fields that the schema does not have are accepted. What has the wrong type
// is empty in the result.
func Read(blob []byte) (*Package, []Problem) {
	var out []Problem
	add := func(path []any, format string, args ...any) {
		if len(out) < maxProblems {
			out = append(out, Problem{path, fmt.Sprintf(format, args...)})
		}
	}
	blobShape.Check(blob, func(f shape.Fault) { add(f.Path, "%s", f) })
	p := &Package{}
	if err := json.Unmarshal(blob, p); err != nil || len(out) > 0 {
		if len(out) == 0 {
			add(nil, "%v", err)
		}
		return p, out
	}
	if p.Package == "" {
		add([]any{"package"}, "the blob names no package")
	}
	if len(p.Versions) == 0 {
		add([]any{"versions"}, "there are no versions")
	}
	seen := map[string]bool{}
	for i, v := range p.Versions {
		at := func(more ...any) []any { return append([]any{"versions", i}, more...) }
		if !isMinor(v.Name) {
			add(at("name"), "%.50q is no minor version such as 4.12", v.Name)
		}
		if seen[v.Name] {
			add(at("name"), "the version %.50q is there twice", v.Name)
		}
		seen[v.Name] = true
		if len(v.Phases) == 0 {
			add(at("phases"), "the version %.50q has no phases", v.Name)
		}
		checkPhases(v.Phases, func(path []any, format string, args ...any) { add(at(path...), format, args...) })
		for j, platform := range v.Platforms {
			for k, version := range platform.Versions {
				if platform.Name == openShift && !isMinor(version) {
					add(at("platformCompatibility", j, "versions", k), "%.50q is no minor version such as 4.12", version)
				}
			}
		}
	}
	return p, out
}

// checkPhases reports dates that are none, and phases that do not begin on the day after the one before.
func checkPhases(phases []Phase, add func(path []any, format string, args ...any)) {
	var last time.Time
	for i, p := range phases {
		date := func(field, text string) time.Time {
			day, err := time.Parse(time.DateOnly, text)
			if err != nil {
				add([]any{"phases", i, field}, "%.50q is not a date such as 2027-01-31", text)
			}
			return day
		}
		if p.Name == "" {
			add([]any{"phases", i, "name"}, "the phase has no name")
		}
		start, end := date("startDate", p.StartDate), date("endDate", p.EndDate)
		switch {
		case start.IsZero() || end.IsZero():
		case end.Before(start):
			add([]any{"phases", i, "endDate"}, "the phase %.50q ends before it begins", p.Name)
		case !last.IsZero() && !start.Equal(last.AddDate(0, 0, 1)):
			add([]any{"phases", i, "startDate"}, "the phase %.50q begins on %s, and the one before ends on %s: the next day is expected",
				p.Name, p.StartDate, last.Format(time.DateOnly))
		}
		last = end
	}
}

var minorForm = lazyregexp.New(`^(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})$`)

func isMinor(text string) bool { return minorForm().MatchString(text) }

// OpenShift returns the versions of OpenShift that a version of an operator is for.
func (v Version) OpenShift() (out []string) {
	for _, p := range v.Platforms {
		if p.Name == openShift {
			out = append(out, p.Versions...)
		}
	}
	return out
}
