package bundlecheck

import (
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/rules"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// readProblems adds the problems found when the bundle was read, except those that this package reports in more detail.
func (r *run) readProblems() {
	plain := r.o.Plain || r.detected == bundle.Plain
	for _, p := range r.b.Problems {
		if r.replaced(p) || plain && p.Rule == bundle.RuleDocuments && r.inManifests(p.File) {
			continue
		}
		if p.Rule == bundle.RuleSyntax && r.inManifests(p.File) && (plain || !r.hasObjects(p.File)) {
			// Reading skips the file, and so does OLM v0: the content of a manifest would be missing, of a README nothing.
			if isManifest(p.File) || plain || r.o.OPM {
				p.Severity = bundle.SeverityError
			} else {
				p.Message += ": OLM v0 logs that, and opm alpha bundle validate refuses the bundle"
			}
		}
		r.addFinding(finding{Problem: p})
	}
}

// isManifest reports whether a file is named as a manifest.
func isManifest(file string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(path.Ext(file)))
}

// partial reports whether reading was aborted, or skipped something that is not a regular file.
func (r *run) partial() bool {
	return slices.ContainsFunc(r.b.Problems, func(p bundle.Problem) bool {
		return p.Severity == bundle.SeverityError && (p.Rule == bundle.RuleLimit && !strings.HasPrefix(p.Field,
			"dependencies[") || p.Rule == bundle.RuleFile)
	})
}

func (r *run) inManifests(file string) bool {
	return path.Dir(file) == path.Clean(r.b.ManifestsDir) && path.Base(file)[0] != '.'
}

func (r *run) hasObjects(file string) bool {
	return slices.ContainsFunc(r.b.Objects, func(o bundle.Object) bool { return o.File == file })
}

// replaced reports whether other checks of this package report the problem in more detail.
func (r *run) replaced(p bundle.Problem) bool {
	switch {
	case p.Rule == bundle.RuleMediaType, strings.HasPrefix(p.Field, "dependencies["):
		return true
	case p.Rule == bundle.RuleDirectory && strings.HasPrefix(p.Field, "annotations["):
		return true
	case p.Rule == bundle.RuleDirectory && p.Severity == bundle.SeverityWarning:
		dir := path.Dir(p.File)
		return dir == path.Clean(r.b.ManifestsDir) || dir == path.Clean(r.b.MetadataDir)
	case p.Rule == bundle.RuleName && strings.HasSuffix(p.Field, "["+bundle.AnnotationPackage+"]"):
		return r.b.Package == ""
	case p.Rule == bundle.RuleCRD, p.Rule == bundle.RuleCSVSecond, p.Rule == bundle.RuleCSVMissing:
		return r.o.Plain || p.Rule == bundle.RuleCRD && r.detected == bundle.RegistryV1
	}
	return false
}

// sameRefusals are the rules of [Run] that say the same as a rule of OLM v1.
var sameRefusals = map[string]string{"olmv1.validator:3": "crd-twice", "olmv1.validator:4": "crd-missing",
	"olmv1.validator:13": "kind"}

// olmv1 warns of what OLM v1 refuses, by the rules of a check.
func (r *run) olmv1() {
	if !r.o.OLMv1 {
		return
	}
	s := &Subject{FS: r.fsys, Bundle: r.b, Settings: manifests.Settings{Certs: manifests.CertManager}}
	for _, c := range olmv1Checks {
		r.guard(func() {
			c.Find(r.ctx, s, func(f rules.Finding) {
				i := slices.IndexFunc(c.Rules, func(rule rules.Rule) bool { return rule.ID == f.Rule })
				rule := c.Rules[max(i, 0)]
				if rule.Severity != rules.Error {
					return // OLM v1 takes it
				}
				message := "OLM v1 refuses the bundle: " + f.Message
				if rule.Fix != seeMessage {
					message += "; " + rule.Fix
				}
				r.addFinding(finding{refusal: true, Problem: bundle.Problem{Severity: bundle.SeverityWarning, Rule: rule.ID,
					File: f.File, Line: f.Line, Column: f.Column, Field: f.Field, Message: message}})
			})
		})
	}
}

// isError reports whether another finding reports a refusal of OLM v1 already, as an error or in the words of this
// program.
func (r *run) isError(v1 finding) bool {
	return slices.ContainsFunc(r.found, func(f finding) bool {
		if v1.Rule == olmv1Prefix+idAPIInvalid && f.Rule == "crd-schema" && f.File == v1.File && f.Line == v1.Line {
			return true // a warning, in the words of this program
		}
		return f.Severity == bundle.SeverityError && !f.refusal && f.File == v1.File && (f.Line == v1.Line ||
			v1.Rule == rules.RuleUnreadable.ID || f.Rule == sameRefusals[v1.Rule])
	})
}

// isRepeated reports whether a wrong type that reading found is reported for the whole object, too.
func (r *run) isRepeated(p bundle.Problem) bool {
	return p.Rule == bundle.RuleCSV && slices.ContainsFunc(r.found, func(f finding) bool {
		return f.Rule == ruleObjectInvalid && f.File == p.File && f.Field == p.Field && f.Line == p.Line &&
			strings.HasSuffix(f.Message, p.Message)
	})
}
