package bundle

import "fmt"

// StrictProblems returns what OLM v1 cannot read although [Read] passes it over: a directory in manifests, and files
// there, in annotations.yaml and in properties.yaml that have no objects. OLM v1 names the first only.
func (b *Bundle) StrictProblems() []Problem {
	out := append([]Problem(nil), b.strict...)
	for _, d := range []struct{ dir, usual string }{{b.ManifestsDir, "manifests"}, {b.MetadataDir, "metadata"}} {
		if d.dir != d.usual {
			out = append(out, Problem{Severity: SeverityError, Rule: RuleDirectory, File: d.dir,
				Message: fmt.Sprintf("OLM v1 reads %q, whatever the annotations say", d.usual)})
		}
	}
	return out
}

// strictly returns a problem with the message for OLM v1.
func strictly(p Problem, message string) Problem {
	p.Severity, p.Message = SeverityError, message
	return p
}
