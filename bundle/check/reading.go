package check

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/bundle"
)

// readProblems adds the problems found when the bundle was read, except those that this package reports in more detail.
func (r *run) readProblems() {
	plain := r.o.Plain || r.detected == bundle.Plain
	for _, p := range r.b.Problems {
		if r.replaced(p) || plain && p.Rule == bundle.RuleDocuments && r.inManifests(p.File) {
			continue
		}
		if p.Rule == bundle.RuleSyntax && r.inManifests(p.File) && (plain || !r.hasObjects(p.File)) {
			// Reading skips the file, and so does OLM: its content would be missing.
			p.Severity = bundle.SeverityError
		}
		r.note(finding{Problem: p})
	}
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
	case p.Rule == bundle.RuleVersionNumber && p.Field == "spec.release":
		return true // any number there is refused
	case p.Rule == bundle.RuleCRD, p.Rule == bundle.RuleCSVSecond, p.Rule == bundle.RuleCSVMissing:
		return r.o.Plain || p.Rule == bundle.RuleCRD && r.detected == bundle.RegistryV1
	}
	return false
}

// strictProblems reports what OLM v1 refuses, unless it is an error anyway.
func (r *run) strictProblems() {
	for _, p := range r.b.StrictProblems() {
		r.mu.Lock()
		known := slices.ContainsFunc(r.found, func(f finding) bool {
			file := f.File
			file = cmp.Or(file, f.place.File)
			return f.Severity == bundle.SeverityError && file == p.File && (f.Rule == p.Rule ||
				p.Rule == bundle.RuleDirectory || p.Rule == bundle.RuleSyntax)
		})
		r.mu.Unlock()
		if known {
			continue
		}
		p.Severity = bundle.SeverityWarning
		if !strings.Contains(p.Message, "OLM v1") {
			p.Message += ": OLM v1 refuses the bundle"
		}
		r.note(finding{Problem: p})
	}
}
