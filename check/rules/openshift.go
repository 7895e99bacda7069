package rules

import (
	"slices"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/check/openshift"
)

// Organization returns the organization whose indices the operator pipeline of the profile fills; empty: it is of none.
func (p Profile) Organization() string {
	switch p {
	case Community:
		return openshift.Community
	case Certified:
		return openshift.Certified
	case Marketplace:
		return openshift.Marketplace
	}
	return ""
}

// OpenShift adds to the report which versions of OpenShift take a bundle: those for which an organization has an index,
// or if none is given, the organizations of the profiles.
func (r *Run) OpenShift(b *bundle.Bundle, organizations ...string) {
	if len(organizations) == 0 {
		for _, p := range r.o.Profiles {
			if name := p.Organization(); name != "" {
				organizations = append(organizations, name)
			}
		}
	}
	if len(organizations) == 0 {
		return
	}
	table := r.o.Data.OpenShift()
	var indices []openshift.Version
	for _, name := range organizations {
		indices = append(indices, table.Indices(name)...)
	}
	slices.SortFunc(indices, openshift.Version.Compare)
	s := openshift.Of(b, table, slices.Compact(indices))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.OpenShift = append(r.out.OpenShift, s)
}

// SetTitle records the title of a pull request.
func (r *Run) SetTitle(title string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.out.Title = title
}
