package rules

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/operator-bindery/bindery/check/openshift"
	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/nearest"
)

// Options say which rules a run has and what it does with what they find.
type Options struct {
	// Profiles are those whose rules run; at least one.
	Profiles []Profile
	// Skip are the identifiers of rules that do not run.
	Skip []string
	// Waivers accept findings.
	Waivers *Waivers
	// FailOn is the lowest severity that makes a check fail; [Error] if empty.
	FailOn Severity
	// Data is the rule data; nil is the built-in one.
	Data *Data
	// Now is compared with the dates of waivers.
	Now time.Time
	// KubeVersion is the version of Kubernetes that the rules of OLM v1 assume, for the report.
	KubeVersion string
}

// maxPerRule limits how many findings of one rule about one part a report holds, the others the bytes of each message.
const (
	maxPerRule        = 1000
	maxMessage        = 1000
	maxUpgradeMessage = 16 << 10
)

// Run collects what rules find. It is safe for concurrent use.
type Run struct {
	*collector
	at Part
}

// Part is a part of what is checked: its findings are about files below a directory.
type Part struct {
	// Dir is the directory, relative to what is checked.
	Dir string
	// Target names the part in its findings, as operators/etcd/1.2.3.
	Target string
	// LeftOut reports which rules do not run for the part; nil: all do.
	LeftOut func(Rule) bool
}

// In returns the run for a part of what is checked.
func (r *Run) In(p Part) *Run { return &Run{r.collector, p} }

// collector has what the parts of a run share.
type collector struct {
	o    Options
	skip map[string]bool

	mu      sync.Mutex
	out     Report
	seen    map[identity]bool
	perRule map[string]int
	ran     map[string]Rule
	notRun  map[string]string
	bundles []Installability
	index   map[bundleKey]int
	refused map[bundleKey][]string

	upgrades *Upgrades
}

// identity is what makes two findings one.
type identity struct {
	rule, target, pkg, channel, bundle, file, field, image, message string
	line                                                            int
}

// NewRun begins a run. known are all rules that there are; an unknown name to skip or waive is an error.
func NewRun(o Options, known []Rule) (*Run, error) {
	o.FailOn = cmp.Or(o.FailOn, Error)
	if o.Data == nil {
		o.Data = builtin()
	}
	r := &Run{collector: &collector{o: o, skip: map[string]bool{}, seen: map[identity]bool{}, perRule: map[string]int{},
		ran: map[string]Rule{}, notRun: map[string]string{}, index: map[bundleKey]int{},
		refused: map[bundleKey][]string{},
		out:     Report{Profiles: o.Profiles, Passed: true, Findings: []Finding{}, More: map[string]int{}}}}
	if r.Has(OLMv1) {
		r.out.KubeVersion = o.KubeVersion
	}
	for _, id := range o.Skip {
		if err := CheckID(id, known); err != nil {
			return nil, err
		}
		r.skip[id] = true
	}
	if err := o.Waivers.CheckRules(known); err != nil {
		return nil, err
	}
	return r, nil
}

// CheckID refuses the identifier of a rule that does not exist.
func CheckID(id string, known []Rule) error {
	var names []string
	for _, rule := range known {
		if rule.ID == id {
			return nil
		}
		names = append(names, rule.ID)
	}
	if near, ok := nearest.Name(id, names); ok {
		return fmt.Errorf("there is no rule %q, did you mean %q?", id, near)
	}
	return fmt.Errorf("there is no rule %q, see \"bindery check --list\"", id)
}

// Has reports whether the run has the rules of a profile.
func (r *Run) Has(p Profile) bool { return slices.Contains(r.o.Profiles, p) }

// Data returns the rule data.
func (r *Run) Data() *Data { return r.o.Data }

// Wants reports whether a rule runs.
func (r *Run) Wants(rule Rule) bool {
	return !r.skip[rule.ID] && slices.ContainsFunc(r.o.Profiles, rule.In) &&
		(r.at.LeftOut == nil || !r.at.LeftOut(rule))
}

// Ran notes that a rule was checked.
func (r *Run) Ran(rules ...Rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range rules {
		if r.Wants(rule) {
			r.ran[rule.ID] = rule
		}
	}
}

// NotRun notes that rules cannot be checked, and why.
func (r *Run) NotRun(reason string, rules ...Rule) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range rules {
		if r.Wants(rule) {
			r.notRun[rule.ID] = reason
		}
	}
}

// emitOf returns the function that reports findings of the rules.
func (r *Run) emitOf(rules []Rule) Emit {
	byID := map[string]Rule{}
	for _, rule := range rules {
		if r.Wants(rule) {
			byID[rule.ID] = rule
		}
	}
	r.Ran(rules...)
	return func(f Finding) {
		if f.Rule == "" && len(rules) == 1 {
			f.Rule = rules[0].ID
		}
		rule, wanted := byID[f.Rule]
		if !wanted {
			return
		}
		f.Severity = cmp.Or(f.Severity, rule.Severity)
		f.Fix = cmp.Or(f.Fix, rule.Fix)
		r.add(f, rule.In(OLMv1) && f.Severity == Error && rule.ID != RuleUpgrade.ID)
	}
}

// add adds a finding. refuses tells that OLM v1 does not install the package or bundle that the finding is about.
func (r *Run) add(f Finding, refuses bool) {
	for _, s := range []*string{&f.Package, &f.Channel, &f.Bundle, &f.Field, &f.Image} {
		*s = fault.Short(*s)
	}
	most := maxMessage
	if f.Rule == RuleUpgrade.ID { // a line for each change of a definition
		most = maxUpgradeMessage
	}
	f.Message = fault.Clip(f.Message, most)
	if f.Target = cmp.Or(f.Target, r.at.Target); f.File != "" && !f.InImage {
		f.File = path.Join(r.at.Dir, f.File)
	}
	key := identity{f.Rule, f.Target, f.Package, f.Channel, f.Bundle, f.File, f.Field, f.Image, f.Message, f.Line}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[key] {
		return
	}
	if refuses && (f.Package != "" || f.Bundle != "") {
		r.refuse(f.Package, f.Bundle, f.Rule)
	}
	r.o.Waivers.apply(&f, r.o.Now)
	r.count(&f)
	of := f.Rule + "\x00" + r.at.Target
	if r.perRule[of]++; r.perRule[of] > maxPerRule {
		r.out.More[f.Rule]++
		return
	}
	r.seen[key] = true
	r.out.Findings = append(r.out.Findings, f)
}

// count adds a finding to the sums of the report.
func (r *Run) count(f *Finding) {
	switch {
	case f.Waived != "":
		r.out.Waived++
		return
	case f.Severity == Error:
		r.out.Errors++
	case f.Severity == Note:
		r.out.Notes++
	default:
		r.out.Warnings++
	}
	if f.Severity.atLeast(r.o.FailOn) {
		r.out.Passed = false
	}
}

// ruleAPIInvalid is the rule of package check that the API server takes the objects.
const ruleAPIInvalid = "olmv1.api-invalid"

// sameMistake maps rules of OLM v1 to those of opm that find the same mistake. What a bundle is refused for is counted
// under the rule of OLM v1 all the same, see [Installability].
var sameMistake = map[string]string{
	RuleUnreadable.ID: opmPrefix + declcfg.RuleSyntax,
	ruleVersion.ID:    opmPrefix + declcfg.RuleVersion,
}

// dropRepeated removes findings of OLM v1 about mistakes that the rules of opm or of bundles find, too: one mistake
// is one finding.
func (r *Run) dropRepeated(out *Report) {
	type mistake struct {
		rule, pkg, bundle, file string
		line                    int
	}
	// A file that cannot be read is known by its line, a version by its bundle.
	of := func(rule string, f *Finding) mistake {
		if rule == opmPrefix+declcfg.RuleVersion {
			return mistake{rule, f.Package, f.Bundle, f.File, 0}
		}
		return mistake{rule, "", "", f.File, f.Line}
	}
	// What OLM v1 cannot read of a bundle is reported by the rules of bundles if they find an error in the same file.
	type place struct{ bundle, file string }
	found, inBundles := map[mistake]bool{}, map[place]bool{}
	// What the API server refuses of an object is one mistake with what the rules of bundles find at its line: their
	// error, or else its own.
	type line struct {
		place
		line int
	}
	errorAt, refusedAt := map[line]bool{}, map[line]bool{}
	// What the catalog and the image of a bundle say is reported for the image, which is what is installed.
	type refusal struct{ rule, pkg, bundle, message string }
	inImages := map[refusal]bool{}
	for i := range out.Findings {
		f := &out.Findings[i]
		if f.Waived != "" {
			continue
		}
		found[of(f.Rule, f)] = true
		at := line{place{f.Bundle, f.File}, f.Line}
		errorAt[at] = errorAt[at] || strings.HasPrefix(f.Rule, "bundle.") && f.Severity == Error
		refusedAt[at] = refusedAt[at] || f.Rule == ruleAPIInvalid && f.Severity == Error
		if f.InImage {
			inImages[refusal{f.Rule, f.Package, f.Bundle, f.Message}] = true
		}
		if strings.HasPrefix(f.Rule, "bundle.") && f.Severity == Error {
			inBundles[place{f.Bundle, f.File}] = true
		}
	}
	out.Findings = slices.DeleteFunc(slices.Clone(out.Findings), func(f Finding) bool {
		if f.Waived == "" && !f.InImage && f.Severity == Error &&
			inImages[refusal{f.Rule, f.Package, f.Bundle, f.Message}] {
			out.Errors--
			return true
		}
		switch at := (line{place{f.Bundle, f.File}, f.Line}); {
		case f.Waived != "" || f.File == "" || f.Line == 0:
		case f.Rule == "bundle.crd-schema" && f.Severity == Warning && refusedAt[at]:
			out.Warnings--
			return true
		case f.Rule == ruleAPIInvalid && f.Severity == Error && errorAt[at]:
			out.Errors--
			return true
		}
		other := sameMistake[f.Rule]
		if other == "" || f.Waived != "" || f.Severity != Error ||
			!found[of(other, &f)] && (f.Rule != RuleUnreadable.ID || !inBundles[place{f.Bundle, f.File}]) {
			return false
		}
		out.Errors--
		return true
	})
}

// Report ends the run. subject and kind are what was checked.
func (r *Run) Report(subject string, kind Scope) *Report {
	r.at = Part{}
	for _, f := range r.o.Waivers.leftover(r.o.Now, r.ran) {
		r.add(f, false)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	out := r.out
	out.Subject, out.Kind = subject, kind
	r.dropRepeated(&out)
	slices.SortStableFunc(out.Findings, Finding.compare)
	for id, rule := range r.ran {
		if r.notRun[id] == "" {
			out.Rules = append(out.Rules, rule)
		}
	}
	slices.SortFunc(out.Rules, func(a, b Rule) int { return cmp.Compare(a.ID, b.ID) })
	for id, reason := range r.notRun {
		out.NotRun = append(out.NotRun, notRun{id, reason})
	}
	slices.SortFunc(out.NotRun, func(a, b notRun) int { return cmp.Compare(a.Rule, b.Rule) })
	slices.SortStableFunc(out.OpenShift, openshift.Support.Compare)
	out.Bundles, out.Upgrades = r.installability(), r.upgrades
	return &out
}

// findLines replaces the line of a blob by that of the value in it, where it can be found.
func (r *Run) findLines(fsys fs.FS, l declcfg.Limits) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var places []declcfg.Place
	for i := range r.out.Findings {
		if f := &r.out.Findings[i]; len(f.path) > 0 && f.Line > 0 {
			file, here := f.File, true
			if r.at.Dir != "" {
				file, here = strings.CutPrefix(f.File, r.at.Dir+"/")
			}
			if !here {
				continue
			}
			places = append(places, declcfg.Place{File: file, Line: &f.Line, Column: &f.Column, Path: f.path})
		}
	}
	l.FindLines(fsys, places)
}
