package template

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/versions"
)

// versioned is a bundle of a semver template.
type versioned struct {
	name    string
	version semver.Version
	image   string
}

// versions returns the bundles of every archetype sorted by version, and the package that all of them must belong to.
func (t *semverTemplate) versions(r *run) (pkg string, lists [archetypes][]versioned) {
	for a := range archetypes {
		names := map[string]bool{}
		paths := map[string][]any{}
		for _, ref := range t.bundles[a] {
			b := r.rendered[ref.image].original
			version, err := versionOf(&b)
			switch {
			case err != nil:
				r.add(ref.path, opmBundles, "%v", err)
				continue
			case pkg == "":
				pkg = b.Package
			case b.Package != pkg:
				// opm uses the package's name in place of the bundle's.
				r.addProblem(reported{
					Problem{Text: fmt.Sprintf("bundle %q of package %q does not belong to this package: %q", b.Name,
						b.Package, pkg)},
					ref.path,
					opmBundles + fmt.Sprintf("bundle %q does not belong to this package: %q", b.Package, pkg)})
				continue
			}
			if names[b.Name] {
				r.add(ref.path, opmBundles, "duplicate bundle name %q", b.Name)
				continue
			}
			names[b.Name] = true
			paths[b.Name] = ref.path
			lists[a] = append(lists[a], versioned{b.Name, version, ref.image})
		}
		slices.SortStableFunc(lists[a], func(x, y versioned) int { return x.version.Compare(y.version) })
		for i := 1; i < len(lists[a]); i++ {
			x, y := lists[a][i-1], lists[a][i]
			if x.version.EQ(y.version) {
				r.add(paths[y.name], opmBundles,
					"bundles %q (version %s) and %q (version %s) have versions that are equal or differ only by "+
						"build metadata, which cannot be ordered",
					x.name, x.version, y.name, y.version)
			}
		}
	}
	return pkg, lists
}

// versionOf returns the version in a bundle's only olm.package property.
func versionOf(b *declcfg.Bundle) (semver.Version, error) {
	count := 0
	for _, p := range b.Properties {
		if p.Type == declcfg.PropertyPackage {
			count++
		}
	}
	if count > 1 {
		return semver.Version{}, fmt.Errorf("bundle %q has multiple %q properties, expected exactly 1", b.Name,
			declcfg.PropertyPackage)
	}
	p, err := b.PackageProperty()
	if err != nil {
		return semver.Version{}, fmt.Errorf("bundle %q: %w", b.Name, err)
	}
	version, err := versions.Parse(p.Version)
	if err != nil {
		return semver.Version{}, fmt.Errorf("bundle %q has invalid version %q: %w", b.Name, p.Version, err)
	}
	return version, nil
}
