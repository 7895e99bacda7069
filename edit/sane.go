package edit

// sane checks the additions against the catalog and each other.
func (a *adder) sane(parts map[string]*part) {
	overwritten := map[string]*candidate{}
	images := map[Name]int{} // number of bundles of a package with an image
	leads := map[string]map[string]place{}
	for name, p := range parts {
		for _, m := range p.bundles {
			images[Name{name, m.blob.Image}]++
		}
	}
	for _, n := range a.candidates {
		p := parts[n.Bundle.Package]
		if p == nil {
			continue
		}
		if n.image != "" {
			for range images[Name{p.name, n.image}] {
				a.report(n.problem(ErrImageExists, "Bundle %s already exists", n.image))
			}
		}
		m := p.bundles[n.name]
		if m == nil {
			continue
		}
		if !a.options.OverwriteLatest || a.options.Mode != Replaces || m.blob.Image == n.image {
			a.report(n.problem(ErrVersionExists, "Bundle already added that provides package and csv: %s/%s", p.name,
				n.name))
			continue
		}
		if leads[p.name] == nil {
			leads[p.name] = p.leadingTo()
		}
		if by, ok := leads[p.name][n.name]; ok {
			a.report(n.problem(ErrOverwrite,
				"Cannot overwrite a bundle that is not at the head of a channel using --overwrite-latest: "+
					"cannot overwrite bundle %s from package %s: replaced by %s on channel %s", n.name, p.name,
				by.bundle,
				by.channel))
			continue
		}
		if first := overwritten[p.name]; first != nil {
			a.report(n.problem(ErrOverwrite,
				"Cannot overwrite more than one bundle at a time for a given package: %s and %s of package %s",
				first.name, n.name, p.name))
			continue
		}
		overwritten[p.name] = n
	}
	a.checkPackagesOfEdges()
	if !a.options.SubstitutesFor && a.options.Mode == Replaces {
		for _, n := range a.candidates {
			if n.SubstitutesFor != "" {
				a.report(n.problem(ErrAlpha,
					"SubstitutesFor is an alpha-only feature. You must enable alpha features with the flag "+
						"--enable-alpha in order to use this feature. (bundle %s substitutes for %s)", n.name,
					n.SubstitutesFor))
			}
		}
	}
}

// place is an entry of a channel.
type place struct{ channel, bundle string }

// leadingTo returns for every bundle that others replace or skip the first of these.
func (p *part) leadingTo() map[string]place {
	out := map[string]place{}
	for _, channel := range sorted(p.channels) {
		c := p.channels[channel]
		for _, by := range sorted(c.entries) {
			e := c.entries[by]
			for _, to := range append([]string{e.Replaces}, e.Skips...) {
				if _, ok := out[to]; !ok && to != by {
					out[to] = place{channel, by}
				}
			}
		}
	}
	return out
}

// checkPackagesOfEdges checks that the names of the added bundles and of their edges belong to one package each.
func (a *adder) checkPackagesOfEdges() {
	if a.options.Mode != Replaces {
		return
	}
	users := map[string][]*candidate{}
	for _, n := range a.candidates {
		names := append([]string{n.name}, n.Skips...)
		if n.Replaces != "" {
			names = append(names, n.Replaces)
		}
		for _, name := range names {
			if u := users[name]; len(u) == 0 || u[len(u)-1] != n {
				users[name] = append(u, n)
			}
		}
	}
	for _, name := range sorted(users) {
		packages := map[string]bool{}
		for _, n := range users[name] {
			packages[n.Bundle.Package] = true
		}
		if len(packages) > 1 {
			f := users[name][0].problem(ErrGraph, "bundle %s must belong to exactly one package, found on: %v", name,
				sorted(packages))
			f.culprits = users[name]
			a.report(f)
		}
	}
	reported := map[string]bool{}
	for i := range a.catalog.Channels {
		channel := &a.catalog.Channels[i]
		for _, e := range channel.Entries {
			if len(users[e.Name]) == 0 || reported[e.Name] {
				continue
			}
			for _, n := range users[e.Name] {
				if n.Bundle.Package != channel.Package {
					reported[e.Name] = true
					a.report(n.problem(ErrGraph,
						"bundle %s belongs to package %s on index, cannot be added as an edge for package %s",
						e.Name, channel.Package, n.Bundle.Package))
				}
			}
		}
	}
}
