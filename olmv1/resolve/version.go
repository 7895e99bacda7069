package resolve

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/shape"
	"github.com/operator-bindery/bindery/internal/versions"
)

// Gates are the feature gates of operator-controller that change a resolution. The zero value has its defaults.
type Gates struct {
	// BundleReleaseSupport takes the release of a bundle from the field "release" of its olm.package property, if it
	// has that field, even an empty one.
	BundleReleaseSupport bool
}

// Dependency returns the type of a bundle's first property that declares a dependency: OLM v1 resolves none and refuses
// the bundle. Only the types of properties are looked at.
func Dependency(b *declcfg.Bundle) (kind string, ok bool) {
	for i := range b.Properties {
		switch t := b.Properties[i].Type; t {
		case declcfg.PropertyPackageRequired, declcfg.PropertyGVKRequired, declcfg.PropertyConstraint:
			return t, true
		}
	}
	return "", false
}

// Version returns the version and the release of a bundle as OLM v1 orders it. They are those of its first olm.package
// property. Build metadata that parses as a release is the release and not part of the version; see
// [Gates.BundleReleaseSupport] for the other place of a release.
func (g Gates) Version(b *declcfg.Bundle) (version, release string, err error) {
	v, err := versionOf(b, g)
	if err != nil {
		return "", "", err
	}
	return v.Version.String(), v.Release.String(), nil
}

// versionOf is like Version with parsed results.
func versionOf(b *declcfg.Bundle, g Gates) (declcfg.VersionRelease, error) {
	for i := range b.Properties {
		if b.Properties[i].Type == declcfg.PropertyPackage {
			return parseProperty(b.Properties[i].Value, g)
		}
	}
	return declcfg.VersionRelease{}, fmt.Errorf("no package property found in bundle %q", b.Name)
}

func parseProperty(value json.RawMessage, g Gates) (declcfg.VersionRelease, error) {
	var pkg property.Package
	if err := json.Unmarshal(value, &pkg); err != nil {
		return declcfg.VersionRelease{}, fmt.Errorf("error unmarshalling package property: %w", shape.Explain(value, err))
	}
	var explicit struct {
		Release *string `json:"release"` // nil if there is no such field
	}
	if err := json.Unmarshal(value, &explicit); err != nil {
		return declcfg.VersionRelease{}, fmt.Errorf("error unmarshalling package release field: %w", shape.Explain(value, err))
	}
	if g.BundleReleaseSupport && explicit.Release != nil {
		return parseExplicit(pkg.Version, *explicit.Release)
	}
	return parseLegacy(pkg.Version)
}

// parseLegacy parses a version whose build metadata is the release, if it parses as one.
func parseLegacy(text string) (declcfg.VersionRelease, error) {
	version, err := versions.Parse(text)
	if err != nil {
		return declcfg.VersionRelease{}, err
	}
	if release, err := declcfg.ParseRelease(strings.Join(version.Build, ".")); err == nil && len(release) > 0 {
		version.Build = nil
		return declcfg.VersionRelease{Version: version, Release: release}, nil
	}
	return declcfg.VersionRelease{Version: version}, nil
}

// parseExplicit parses a version and a release that have fields of their own. Build metadata stays in the version.
func parseExplicit(text, releaseText string) (declcfg.VersionRelease, error) {
	version, err := versions.Parse(text)
	if err != nil {
		return declcfg.VersionRelease{}, fmt.Errorf("error parsing version %q: %w", text, err)
	}
	release, err := declcfg.ParseRelease(releaseText)
	if err != nil {
		return declcfg.VersionRelease{}, fmt.Errorf("error parsing release %q: %w", releaseText, err)
	}
	return declcfg.VersionRelease{Version: version, Release: release}, nil
}
