package check

// readProblems takes over what was found when the bundle was read.
func (r *run) readProblems() {
	for _, p := range r.b.Problems {
		r.note(finding{Problem: p})
	}
}
