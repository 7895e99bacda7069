package resolve

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	mmsemver "github.com/Masterminds/semver/v3"
	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
)

// Installed is the bundle that a ClusterExtension has installed, as its status names it.
type Installed struct {
	Name string
	// Version is the bundle's version. If Release is empty, build metadata that parses as a release is the release.
	Version string
	// Release is the bundle's release, if it is not in the version. See [Gates.BundleReleaseSupport].
	Release string
	// HasRelease says that the release is Release even if that is empty.
	HasRelease bool
}

// parse returns the version and the release. The errors are worded as operator-controller's.
func (i *Installed) parse() (declcfg.VersionRelease, error) {
	parsed, err := parseLegacy(i.Version)
	problem := "failed to get version and release of installed bundle"
	if i.Release != "" || i.HasRelease {
		parsed, err = parseExplicit(i.Version, i.Release)
		problem = "failed to parse installed bundle version and release"
	}
	if err != nil {
		return declcfg.VersionRelease{}, fmt.Errorf("%s: %w", problem, err)
	}
	return parsed, nil
}

// Request is what a ClusterExtension asks for.
type Request struct {
	Package string
	// Channels are the channels whose bundles are candidates; all bundles if there are none.
	Channels []string
	// Version is a constraint on the version in the syntax of Masterminds/semver, of at most 64 characters. A
	// pre-release matches only if the constraint itself has one.
	Version string
	// Installed is what is installed; nil if nothing is. Only its successors, and it itself, are candidates.
	Installed *Installed
	// SelfCertified is the upgradeConstraintPolicy SelfCertified: any bundle may follow what is installed.
	SelfCertified bool
	Gates         Gates
}

// Answer is the chosen bundle.
type Answer struct {
	Bundle string `json:"bundle"`
	Image  string `json:"image,omitempty"`
	// Version is without build metadata that is the release.
	Version string `json:"version"`
	Release string `json:"release,omitempty"`
	Catalog string `json:"catalog,omitempty"`
	// Channels are those of the catalog with an entry of the bundle, or those asked for that have one.
	Channels []string `json:"channels,omitempty"`
	// Deprecations are what the catalog marks as deprecated of what is used.
	Deprecations *Deprecations `json:"deprecations,omitempty"`
	// Candidates is how many bundles of the catalog met all conditions; this one is the first of them.
	Candidates int `json:"candidates"`
	// Unchanged is set if the bundle has the version and release of the installed one.
	Unchanged bool `json:"unchanged,omitempty"`
}

// maxConstraint is the maximum length of spec.source.catalog.version.
const maxConstraint = 64

// Resolver has what catalogs contain of one package.
type Resolver struct {
	pkg      string
	gates    Gates
	catalogs []*filed
}

// NewResolver reads the package out of catalogs. The order of the catalogs does not matter for what is resolved.
func NewResolver(ctx context.Context, catalogs []Catalog, pkg string, g Gates) (*Resolver, error) {
	r := &Resolver{pkg: pkg, gates: g}
	for i := range catalogs {
		f, err := file(ctx, &catalogs[i], pkg, g)
		if err != nil {
			return nil, fmt.Errorf("error walking catalogs: %w", err)
		}
		r.catalogs = append(r.catalogs, f)
	}
	return r, nil
}

// Found reports whether a catalog has a blob of the package.
func (r *Resolver) Found() bool {
	return slices.ContainsFunc(r.catalogs, func(f *filed) bool { return f.any })
}

// Channels returns the names of the package's channels in all catalogs, sorted.
func (r *Resolver) Channels() []string {
	var names []string
	for _, f := range r.catalogs {
		for i := range f.channels {
			names = append(names, f.channels[i].name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// found is the first candidate of a catalog.
type found struct {
	in         *filed
	bundle     *candidate
	candidates int
}

// Resolve returns the bundle that OLM v1 installs, or upgrades to. The package and the gates are those of the resolver,
// whatever the request says. The error has the message of the ClusterExtension's condition: a [*NotFoundError] if there
// is no candidate or there are candidates in more than one catalog, a [*DependencyError] or a [*VersionError] if the
// chosen bundle cannot be used, and any other error if a version or the request is malformed.
func (r *Resolver) Resolve(q Request) (*Answer, error) {
	inRange, err := constraint(q.Version)
	if err != nil {
		return nil, err
	}
	var best []found
	for _, f := range r.catalogs {
		if !f.any {
			continue
		}
		candidates, err := f.candidates(&q, inRange)
		if err != nil {
			return nil, fmt.Errorf("error walking catalogs: %w", err)
		}
		if len(candidates) == 0 {
			continue
		}
		b := slices.MinFunc(candidates, before)
		if len(best) > 0 && b.deprecated != best[0].bundle.deprecated {
			if b.deprecated {
				continue
			}
			best = nil
		}
		best = append(best, found{f, b, len(candidates)})
	}
	slices.SortStableFunc(best, func(a, b found) int { return cmp.Compare(b.in.priority, a.in.priority) })
	if len(best) > 1 && best[0].in.priority > best[1].in.priority {
		best = best[:1]
	}
	if len(best) != 1 {
		return nil, r.notFound(&q, best)
	}
	return r.answer(&q, best[0])
}

func (r *Resolver) notFound(q *Request, best []found) error {
	e := &NotFoundError{Package: r.pkg, Version: q.Version, Channels: q.Channels}
	if q.Installed != nil {
		e.Upgrade, e.Installed = true, q.Installed.Version
	}
	for _, b := range best {
		e.Catalogs = append(e.Catalogs, b.in.name)
	}
	slices.Sort(e.Catalogs)
	return e
}

// answer describes the chosen bundle, or returns why it cannot be used.
func (r *Resolver) answer(q *Request, f found) (*Answer, error) {
	b := f.bundle
	if b.versionErr != nil {
		return nil, &VersionError{Bundle: b.name, Err: b.versionErr}
	}
	if b.dependency != "" {
		return nil, &DependencyError{Bundle: b.name, Property: b.dependency}
	}
	a := &Answer{Bundle: b.name, Image: b.image, Version: b.version.Version.String(),
		Release: b.version.Release.String(), Catalog: f.in.name, Candidates: f.candidates}
	for i := range f.in.channels {
		c := &f.in.channels[i]
		if (len(q.Channels) == 0 || slices.Contains(q.Channels, c.name)) && c.has(b.name) {
			a.Channels = append(a.Channels, c.name)
		}
	}
	if q.Installed != nil {
		installed, err := q.Installed.parse()
		a.Unchanged = err == nil && b.version.Compare(installed) == 0
	}
	a.Deprecations = f.in.deprecationsOf(q, b.name)
	return a, nil
}

func (c *channel) has(bundle string) bool {
	return slices.ContainsFunc(c.entries, func(e entry) bool { return e.name == bundle })
}

// constraint parses a range of versions; nil contains all.
func constraint(text string) (func(semver.Version) bool, error) {
	if text == "" {
		return nil, nil
	}
	if len(text) > maxConstraint {
		return nil, fmt.Errorf("desired version range %q is invalid: may not be more than %d bytes",
			text[:maxConstraint]+"…", maxConstraint)
	}
	c, err := mmsemver.NewConstraint(text)
	if err != nil {
		message := err.Error()
		if bad, ok := strings.CutPrefix(message, "improper constraint: "); ok && !strings.HasPrefix(bad, `"`) {
			message = fmt.Sprintf("improper constraint: %q", bad)
		}
		return nil, fmt.Errorf("desired version range %q is invalid: %s", text, message)
	}
	return func(v semver.Version) bool {
		pre := make([]string, len(v.Pre))
		for i, p := range v.Pre {
			pre[i] = p.String()
		}
		return c.Check(mmsemver.New(v.Major, v.Minor, v.Patch, strings.Join(pre, "."), strings.Join(v.Build, ".")))
	}, nil
}
