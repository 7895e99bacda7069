package rules

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"

	"github.com/operator-bindery/bindery/internal/shape"
)

// Waivers accept findings for a reason, until a date.
type Waivers struct {
	file    string
	entries []waiver
}

type waiver struct {
	Rule    string `json:"rule"`
	Package string `json:"package"`
	Channel string `json:"channel"`
	Bundle  string `json:"bundle"`
	File    string `json:"file"`
	Reason  string `json:"reason"`
	Until   string `json:"until"`

	line int
	end  time.Time
	used bool
}

type waiverFile struct {
	Schema  string   `json:"$schema"` // for editors
	Waivers []waiver `json:"waivers"`
}

var waiverShape = shape.Strict[waiverFile]()

// maxWaiverErrors limits how many errors of a file are reported.
const maxWaiverErrors = 20

// maxWaivers limits the bytes of a file of waivers, and their number.
const (
	maxWaiverFile = 1 << 20
	maxWaivers    = 10_000
)

// waiverRules are the rules on waivers themselves. They belong to every profile.
var waiverRules = []Rule{
	{ID: "waiver.expired", Severity: Error, Profiles: Profiles(), Scopes: []Scope{OnCatalog, OnBundle},
		Title: "A waiver that has expired accepts nothing.",
		Fix:   "mend what it was for, or agree on another date"},
	{ID: "waiver.unused", Severity: Warning, Profiles: Profiles(), Scopes: []Scope{OnCatalog, OnBundle},
		Title: "A waiver accepts at least one finding.",
		Fix:   "remove it from the file"},
}

// ReadWaivers reads waivers from YAML: a map with the list waivers. Each has a rule, a reason, and until, the last day
// on which it counts, as 2027-01-31 in UTC. package, channel, bundle and file narrow it down; they may have the
// wildcards of [path.Match]. All errors are reported together, with the line of each.
func ReadWaivers(r io.Reader, name string) (*Waivers, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxWaiverFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxWaiverFile {
		return nil, fmt.Errorf("%s: larger than %d bytes", name, maxWaiverFile)
	}
	var file waiverFile
	doc, err := shape.Read(bytes.NewReader(text), waiverShape, shape.Options{File: name})
	if err == nil {
		err = doc.Decode(&file)
	}
	if err != nil {
		return nil, err
	}
	if len(file.Waivers) > maxWaivers {
		return nil, fmt.Errorf("%s: more than %d waivers", name, maxWaivers)
	}
	w := &Waivers{file: name}
	var errs []error
	for i, e := range file.Waivers {
		e.line = doc.Line("waivers", i)
		if err := e.check(); err != nil {
			if errs = append(errs, fmt.Errorf("%s:%d: %w", name, e.line, err)); len(errs) == maxWaiverErrors {
				break
			}
			continue
		}
		w.entries = append(w.entries, e)
	}
	return w, errors.Join(errs...)
}

// check checks the fields of a waiver and computes its end.
func (e *waiver) check() error {
	for _, f := range []struct{ name, value string }{{"rule", e.Rule}, {"reason", e.Reason}, {"until", e.Until}} {
		if strings.TrimSpace(f.value) == "" {
			return fmt.Errorf("a waiver needs %s", f.name)
		}
	}
	day, err := time.Parse(time.DateOnly, e.Until)
	if err != nil {
		return fmt.Errorf("until: %q is not a date such as 2027-01-31", e.Until)
	}
	e.end = day.AddDate(0, 0, 1)
	for _, pattern := range []string{e.Package, e.Channel, e.Bundle, e.File} {
		if _, err := path.Match(pattern, ""); err != nil {
			return fmt.Errorf("%q is not a pattern: %w", pattern, err)
		}
	}
	return nil
}

// CheckRules refuses waivers for rules that do not exist.
func (w *Waivers) CheckRules(known []Rule) error {
	if w == nil {
		return nil
	}
	var errs []error
	for _, e := range w.entries {
		if err := CheckID(e.Rule, known); err != nil {
			errs = append(errs, fmt.Errorf("%s:%d: %w", w.file, e.line, err))
		}
	}
	return errors.Join(errs...)
}

// apply marks a finding as accepted by the first waiver that fits.
func (w *Waivers) apply(f *Finding, now time.Time) {
	if w == nil {
		return
	}
	for i := range w.entries {
		if e := &w.entries[i]; e.fits(f) {
			e.used = true
			if now.Before(e.end) {
				f.Waived = e.Reason + " (until " + e.Until + ")"
				return
			}
		}
	}
}

func (e *waiver) fits(f *Finding) bool {
	if e.Rule != f.Rule {
		return false
	}
	for _, p := range [][2]string{{e.Package, f.Package}, {e.Channel, f.Channel}, {e.Bundle, f.Bundle},
		{e.File, f.File}} {
		if ok, _ := path.Match(p[0], p[1]); p[0] != "" && !ok {
			return false
		}
	}
	return true
}

// leftover returns findings about waivers that have expired, or whose rules ran and found nothing that they fit.
func (w *Waivers) leftover(now time.Time, ran map[string]Rule) (out []Finding) {
	if w == nil {
		return nil
	}
	for _, e := range w.entries {
		f := Finding{File: w.file, Line: e.line}
		switch {
		case e.used && !now.Before(e.end):
			f.Rule, f.Severity, f.Fix = waiverRules[0].ID, waiverRules[0].Severity, waiverRules[0].Fix
			f.Message = fmt.Sprintf("the waiver for %s counted until %s", e.Rule, e.Until)
		case !e.used && ran[e.Rule].ID != "":
			f.Rule, f.Severity, f.Fix = waiverRules[1].ID, waiverRules[1].Severity, waiverRules[1].Fix
			f.Message = fmt.Sprintf("nothing needs the waiver for %s", e.Rule)
		default:
			continue
		}
		out = append(out, f)
	}
	return out
}
