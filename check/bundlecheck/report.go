package bundlecheck

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/internal/bundlefs"
	"github.com/operator-bindery/bindery/internal/canon"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Report is the result of a check. It is immutable.
type Report struct {
	// Problems are sorted by file, line, rule, field and message, without duplicates.
	Problems []bundle.Problem
	// Size is the bundle's size in the ConfigMap that it is unpacked to. It is zero for media types other than
	// registry+v1.
	Size Size

	opm []string
}

// Failed reports whether there is an error among the problems.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Problems, func(p bundle.Problem) bool { return p.Severity == bundle.SeverityError })
}

// OpmMessage returns the message with which opm refuses such a bundle: all errors, with opm's wording where it has one.
// Where opm prints the address of a value this has the value.
func (r *Report) OpmMessage() string {
	return "Bundle validation errors: " + strings.Join(r.opm, ",")
}

// finding is a problem with its place and opm's wording.
type finding struct {
	bundle.Problem
	opm   string // the same as Message if empty
	place place
	// refusal is set for a warning of what OLM v1 refuses.
	refusal bool
}

// place is a value in a document of the bundle. Its line is only determined for a problem.
type place = bundlefs.Place

// placeIn returns the place of a value in an object.
func placeIn(o bundle.Object, path ...any) place {
	return place{File: o.File, Document: o.Document, Line: o.Line, Path: path}
}

func inFile(name string) place { return place{File: name} }

// fail adds an error, with the same message for opm.
func (r *run) fail(rule string, p place, format string, args ...any) {
	r.addFinding(finding{Problem: bundle.Problem{Severity: bundle.SeverityError, Rule: rule,
		Message: fmt.Sprintf(format, args...)}, place: p})
}

func (r *run) warn(rule string, p place, format string, args ...any) {
	r.addFinding(finding{Problem: bundle.Problem{Severity: bundle.SeverityWarning, Rule: rule,
		Message: fmt.Sprintf(format, args...)}, place: p})
}

// addFinding adds a finding. It is safe for concurrent use.
func (r *run) addFinding(f finding) {
	f.Message, f.opm = cut(f.Message, maxMessage), cut(f.opm, maxOpm)
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.found) < maxFindings {
		r.found = append(r.found, f)
	}
}

// Messages may quote invalid values, which may be as long as the bundle: limits in bytes for the report and for opm's
// message.
const maxMessage, maxOpm = 600, 8 << 10

// cut shortens a text and makes it one line.
func cut(text string, limit int) string {
	text = strings.TrimSpace(text)
	return strings.Join(strings.FieldsFunc(fault.Clip(text, limit),
		func(c rune) bool { return c == '\n' || c == '\r' }), " ")
}

// maxFindings limits the size of a report.
const maxFindings = 10_000

// report sorts the findings and determines their lines.
func (r *run) report() *Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.found {
		f := &r.found[i]
		f.File = cmp.Or(f.File, f.place.File)
		if f.Line == 0 {
			f.Line, f.Column = r.lines.Find(f.place)
		}
		if f.Field == "" {
			f.Field = canon.PathName(f.place.Path)
		}
	}
	r.found = slices.DeleteFunc(slices.Clone(r.found), func(f finding) bool {
		return f.refusal && r.isError(f) || r.isRepeated(f.Problem)
	})
	for i := range r.found {
		if r.o.Strict {
			r.found[i].Severity = bundle.SeverityError
		}
	}
	slices.SortStableFunc(r.found, func(a, b finding) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	out := &Report{Size: r.size}
	told := map[bundle.Problem]bool{}
	for _, f := range r.found {
		// Some validators repeat the findings of others.
		key := f.Problem
		key.Rule = ""
		if told[key] {
			continue
		}
		told[key] = true
		out.Problems = append(out.Problems, f.Problem)
		if f.Severity == bundle.SeverityError {
			out.opm = append(out.opm, cmp.Or(f.opm, f.Message))
		}
	}
	return out
}
