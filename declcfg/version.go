package declcfg

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/versions"
)

// VersionRelease orders the bundles of a package: by version, then by release. The zero Release is lower than any
// other.
type VersionRelease struct {
	Version semver.Version
	Release Release
}

// Release is the dot-separated release of a bundle: identifiers as in a semver pre-release.
type Release []semver.PRVersion

const maxReleaseLength = 20

// ParseRelease parses a release. It has at most 20 characters; its numeric identifiers have no leading zeros. The
// empty string is the empty release.
func ParseRelease(s string) (Release, error) {
	if s == "" {
		return nil, nil
	}
	if len(s) > maxReleaseLength {
		return nil, fmt.Errorf("invalid release %q: exceeds maximum length of %d characters", s, maxReleaseLength)
	}
	parts := strings.Split(s, ".")
	release := make(Release, len(parts))
	var errs []error
	for i, part := range parts {
		id, err := semver.NewPRVersion(part)
		if err != nil {
			errs = append(errs, fmt.Errorf("segment %d: %w", i, err))
			continue
		}
		release[i] = id
	}
	if len(errs) > 0 {
		return nil, fmt.Errorf("invalid release %q: %w", s, errors.Join(errs...))
	}
	return release, nil
}

// Compare orders releases as semver orders pre-releases, except that the empty release is the lowest.
func (r Release) Compare(o Release) int {
	for i := range min(len(r), len(o)) {
		if c := r[i].Compare(o[i]); c != 0 {
			return c
		}
	}
	return len(r) - len(o)
}

func (r Release) String() string {
	parts := make([]string, len(r))
	for i, id := range r {
		parts[i] = id.String()
	}
	return strings.Join(parts, ".")
}

// Compare orders by version precedence, then by release. Build metadata is ignored.
func (v VersionRelease) Compare(o VersionRelease) int {
	return cmp.Or(v.Version.Compare(o.Version), v.Release.Compare(o.Release))
}

// String returns the version, followed by a dash and the release if there is one.
func (v VersionRelease) String() string {
	if len(v.Release) == 0 {
		return v.Version.String()
	}
	return v.Version.String() + "-" + v.Release.String()
}

// kubernetesSafe returns the version in a form for names of Kubernetes objects.
func (v VersionRelease) kubernetesSafe() string {
	return strings.ToLower(strings.ReplaceAll(v.String(), "+", "-"))
}

// VersionRelease returns the version of the bundle. If the olm.package property has no release, and the bundle's CSV
// declares that it substitutes for another bundle, the build metadata of the version is its release.
func (b *Bundle) VersionRelease() (VersionRelease, error) {
	p, err := b.PackageProperty()
	if err != nil {
		return VersionRelease{}, err
	}
	return b.versionRelease(p)
}

func (b *Bundle) versionRelease(p property.Package) (VersionRelease, error) {
	version, err := versions.Parse(p.Version)
	if err != nil {
		return VersionRelease{}, fmt.Errorf("error parsing bundle %q version %q: %w", b.Name, p.Version, err)
	}
	if p.Release != "" {
		release, err := ParseRelease(p.Release)
		if err != nil {
			return VersionRelease{}, fmt.Errorf("error parsing bundle %q release version %q: %w", b.Name, p.Release,
				err)
		}
		return VersionRelease{version, release}, nil
	}
	if len(version.Build) == 0 || b.SubstitutesFor() == "" {
		return VersionRelease{Version: version}, nil
	}
	release, err := ParseRelease(strings.Join(version.Build, "."))
	if err != nil {
		return VersionRelease{}, fmt.Errorf("error parsing bundle %q release version %q: %w", b.Name,
			strings.Join(version.Build, "."), err)
	}
	version.Build = nil
	return VersionRelease{version, release}, nil
}
