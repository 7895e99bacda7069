package filter

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/versions"
	"github.com/operator-bindery/bindery/mirror/internal/bounds"
)

// interval is a range of versions with inclusive bounds. Its rules are those of the library that oc-mirror uses: a
// lower bound of 1.2 is 1.2.0, an upper one allows all of 1.2, and versions with a prerelease part are in the range
// only if one of the bounds has such a part.
type interval struct {
	min, max *bounds.Bound
	text     string
	// exact is set if both bounds are the same text: then one bundle is wanted.
	exact bool
}

// parseVersions parses the bounds of a package or a channel; nil if there are none.
func parseVersions(lowest, highest string) (*interval, error) {
	if lowest == "" && highest == "" {
		return nil, nil
	}
	v := &interval{exact: lowest == highest}
	var texts []string
	for _, bound := range []struct {
		text, operator string
		to             **bounds.Bound
	}{{lowest, ">=", &v.min}, {highest, "<=", &v.max}} {
		if bound.text == "" {
			continue
		}
		b, err := bounds.Parse(bound.text)
		if err != nil {
			return nil, err
		}
		*bound.to = &b
		texts = append(texts, bound.operator+bound.text)
	}
	v.text = strings.Join(texts, " ")
	return v, nil
}

// contains reports whether a version is in the range.
func (v *interval) contains(x semver.Version) bool {
	if len(x.Pre) > 0 && (v.min == nil || len(v.min.Pre) == 0) && (v.max == nil || len(v.max.Pre) == 0) {
		return false
	}
	if v.min != nil && x.Compare(v.min.Version) < 0 {
		return false
	}
	switch {
	case v.max == nil:
		return true
	case v.max.Parts == 3:
		return x.Compare(v.max.Version) <= 0
	case x.Major != v.max.Major:
		return x.Major < v.max.Major
	}
	return v.max.Parts == 1 || x.Minor <= v.max.Minor
}

// versionOf returns the version of a bundle: that of its first olm.package property.
func versionOf(b *declcfg.Bundle) (semver.Version, error) {
	for i := range b.Properties {
		if b.Properties[i].Type != declcfg.PropertyPackage {
			continue
		}
		var value struct {
			Version string `json:"version"`
		}
		if err := decode(b.Properties[i].Value, &value); err != nil {
			return semver.Version{}, fmt.Errorf("its package property cannot be read: %w", err)
		}
		v, err := versions.Parse(value.Version)
		if err != nil {
			return v, fmt.Errorf("its version %s is no semantic version", fault.Quote(value.Version))
		}
		return v, nil
	}
	return semver.Version{}, fmt.Errorf("it has no %s property", declcfg.PropertyPackage)
}
