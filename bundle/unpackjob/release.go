package unpackjob

import (
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/internal/versions"
)

// release says what the objects of a release of the Operator Lifecycle Manager have.
type release struct {
	podRef   bool // the pod has the label with the name of the objects
	hardened bool // containers cannot write to their root, and the pod tolerates control planes and nodes that are lost
	account  bool // the objects have a service account, which the pod uses
	expires  bool // a finished job is removed
}

// releaseOf returns what the release of a version has; an empty version is the newest.
func releaseOf(version string) (release, error) {
	if version == "" {
		return release{true, true, true, true}, nil
	}
	v, err := versions.ParseTolerant(version)
	if err != nil {
		return release{}, fmt.Errorf("release %.100q: it is no version such as 0.38.0", version)
	}
	from := func(text string) bool { return v.GE(semver.MustParse(text)) }
	if v.Pre = nil; !from(OldestRelease) || v.Major > 0 {
		return release{}, fmt.Errorf("release %.100q: the objects of releases from %s on are known, and those of 0.x", version,
			OldestRelease)
	}
	return release{podRef: from("0.32.0"), hardened: from("0.33.0"), account: from("0.39.0"), expires: from("0.43.0")}, nil
}
