package bundle

import "fmt"

// StrictProblems returns what the Operator Lifecycle Manager of version 1 objects to although [Read] does not: it wants
// metadata/annotations.yaml of just that name, no directory among the manifests, every file in it to hold Kubernetes
// objects, and exactly one ClusterServiceVersion in all their documents. Problems that Read has found already are reported
// again where they are fatal for that reader.
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

// strictly is a problem as the stricter reader has it.
func strictly(p Problem, message string) Problem {
	p.Severity = SeverityError
	p.Message = message + ": OLM v1 refuses the bundle"
	return p
}
