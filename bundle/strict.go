package bundle

import "fmt"

// StrictProblems returns what OLM v1 refuses although [Read] accepts it: it requires the file
// metadata/annotations.yaml, no directory in manifests, Kubernetes objects in every manifest file, and exactly one
// ClusterServiceVersion in all documents. Problems that Read has reported are repeated if they are fatal for OLM v1.
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
	p.Severity = SeverityError
	p.Message = message + ": OLM v1 refuses the bundle"
	return p
}
