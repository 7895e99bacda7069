package edit

import (
	"cmp"
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/versions"
)

// version orders bundles: by version, then by release.
type version struct{ declcfg.VersionRelease }

// versionOf reads the version of a bundle from its olm.package property.
func versionOf(b *declcfg.Bundle) (version, error) {
	p, err := b.PackageProperty()
	if err != nil {
		return version{}, err
	}
	v, err := versions.Parse(p.Version)
	if err != nil {
		return version{}, fmt.Errorf("version %q: %w", p.Version, err)
	}
	release, err := declcfg.ParseRelease(p.Release)
	return version{declcfg.VersionRelease{Version: v, Release: release}}, err
}

// withBuild compares by precedence and release, then by build metadata as if it were a pre-release, with none as the
// lowest. Numeric identifiers with leading zeros cannot be compared.
func (v version) withBuild(o version) (int, error) {
	if c := v.Compare(o.VersionRelease); c != 0 {
		return c, nil
	}
	a, err := buildAsRelease(v.Version.Build)
	if err != nil {
		return 0, err
	}
	b, err := buildAsRelease(o.Version.Build)
	if err != nil {
		return 0, err
	}
	return a.Compare(b), nil
}

// rank compares with build metadata, as text if necessary: for orders without a meaning.
func (v version) rank(o version) int {
	c, err := v.withBuild(o)
	if err != nil {
		return cmp.Compare(v.Version.String(), o.Version.String())
	}
	return c
}

func buildAsRelease(build []string) (declcfg.Release, error) {
	var out declcfg.Release
	for _, id := range build {
		v, err := semver.NewPRVersion(id)
		if err != nil {
			return nil, fmt.Errorf("failed to convert build-id %q: %w", id, err)
		}
		out = append(out, v)
	}
	return out, nil
}
