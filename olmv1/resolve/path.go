package resolve

import (
	"cmp"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// Step is a bundle that an upgrade goes through.
type Step struct {
	Bundle  string `json:"bundle"`
	Version string `json:"version,omitempty"`
	Release string `json:"release,omitempty"`
}

// Path returns the answers of OLM v1 to a request, one upgrade after the other, until nothing changes any more: the
// first one follows what is installed, and each further one follows the one before. OLM v1 does not plan a path; it
// resolves again once a bundle is installed. An error ends the path and comes with the answers before it. A path that
// returns to a bundle ends there.
func (r *Resolver) Path(q Request) ([]Answer, error) {
	var path []Answer
	seen := map[string]bool{}
	if q.Installed != nil {
		seen[q.Installed.Name] = true
	}
	for {
		a, err := r.Resolve(q)
		if err != nil {
			return path, err
		}
		if a.Unchanged || seen[a.Bundle] {
			return path, nil
		}
		path = append(path, *a)
		seen[a.Bundle] = true
		q.Installed = a.Installed(r.gates)
	}
}

// Installed returns what a ClusterExtension's status says once the bundle is installed.
func (a *Answer) Installed(g Gates) *Installed {
	switch {
	case g.BundleReleaseSupport:
		return &Installed{a.Bundle, a.Version, a.Release, true}
	case a.Release != "":
		return &Installed{Name: a.Bundle, Version: a.Version + "+" + a.Release}
	}
	return &Installed{Name: a.Bundle, Version: a.Version}
}

// find returns a bundle by its name or else by its version; nil if there is none.
func (f *filed) find(nameOrVersion string) *candidate {
	if b := f.byName[nameOrVersion]; b != nil {
		return b
	}
	for i := range f.bundles {
		if b := &f.bundles[i]; b.versionErr == nil && statusVersion(b.version) == nameOrVersion {
			return b
		}
	}
	return nil
}

// Installed returns what is installed if a bundle of the catalogs is, by its name or its version. Version metadata that
// is the release is part of the version, as a ClusterExtension's status has it, unless the gate BundleReleaseSupport is
// on. The second result is false if no catalog has such a bundle.
func (r *Resolver) Installed(nameOrVersion string) (*Installed, bool) {
	for _, f := range r.catalogs {
		b := f.find(nameOrVersion)
		if b == nil || b.versionErr != nil {
			continue
		}
		if r.gates.BundleReleaseSupport {
			return &Installed{b.name, b.version.Version.String(), b.version.Release.String(), true}, true
		}
		return &Installed{Name: b.name, Version: statusVersion(b.version)}, true
	}
	return nil, false
}

// statusVersion returns a version with the release as its build metadata.
func statusVersion(v declcfg.VersionRelease) string {
	if len(v.Release) == 0 {
		return v.Version.String()
	}
	bare := v.Version
	bare.Build = nil
	return bare.String() + "+" + v.Release.String()
}

// Bundles returns the bundles of all catalogs, highest version first; a bundle without a version has no version here
// and is last. A name that two catalogs have is there once.
func (r *Resolver) Bundles() []Step {
	all := map[string]*candidate{}
	for _, f := range r.catalogs {
		for i := range f.bundles {
			if all[f.bundles[i].name] == nil {
				all[f.bundles[i].name] = &f.bundles[i]
			}
		}
	}
	sorted := slices.SortedFunc(maps.Values(all), func(a, b *candidate) int {
		switch {
		case a.versionErr != nil && b.versionErr != nil:
			return cmp.Compare(a.name, b.name)
		case a.versionErr != nil:
			return 1
		case b.versionErr != nil:
			return -1
		}
		return cmp.Or(b.version.Compare(a.version), cmp.Compare(a.name, b.name))
	})
	steps := make([]Step, len(sorted))
	for i, b := range sorted {
		steps[i] = b.step()
	}
	return steps
}

func (b *candidate) step() Step {
	if b.versionErr != nil {
		return Step{Bundle: b.name}
	}
	return Step{b.name, b.version.Version.String(), b.version.Release.String()}
}

// Shadowed returns the bundles of each catalog that have an equal version and release: the first of each group is the
// one that a pin to the version finds, and the others can be reached by their channel alone.
func (r *Resolver) Shadowed() [][]Step {
	var groups [][]Step
	for _, f := range r.catalogs {
		groups = append(groups, f.equal()...)
	}
	return groups
}

func (f *filed) equal() [][]Step {
	var sorted []*candidate
	for i := range f.bundles {
		if f.bundles[i].versionErr == nil {
			sorted = append(sorted, &f.bundles[i])
		}
	}
	slices.SortStableFunc(sorted, func(a, b *candidate) int { return a.version.Compare(b.version) })
	var groups [][]Step
	for len(sorted) > 0 {
		n := 1
		for n < len(sorted) && sorted[n].version.Compare(sorted[0].version) == 0 {
			n++
		}
		if n > 1 {
			group := make([]Step, n)
			for i, b := range sorted[:n] {
				group[i] = b.step()
			}
			groups = append(groups, group)
		}
		sorted = sorted[n:]
	}
	return groups
}

// Shadowed returns the groups of bundles of one package that have an equal version and release, each with the bundle
// first that a pin to the version finds. See [Resolver.Shadowed].
func (g Gates) Shadowed(bundles []declcfg.Bundle) [][]Step {
	named := map[string]candidate{}
	for i := range bundles {
		named[fileName(bundles[i].Name)] = newCandidate(&bundles[i], g)
	}
	f := &filed{}
	for _, name := range inFileOrder(named) {
		f.bundles = append(f.bundles, named[name])
	}
	return f.equal()
}
