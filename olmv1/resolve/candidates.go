package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/internal/versions"
)

// before orders candidates: the deprecated ones last, then the highest version first. Bundles without a version are
// lower than any. Equal candidates stay in the order of their files' names.
func before(a, b *candidate) int {
	if a.deprecated != b.deprecated {
		if a.deprecated {
			return 1
		}
		return -1
	}
	if a.versionErr != nil || b.versionErr != nil {
		switch {
		case a.versionErr == nil:
			return -1
		case b.versionErr == nil:
			return 1
		}
		return 0
	}
	return cmp.Compare(b.version.Compare(a.version), 0)
}

// candidates returns the bundles that meet all conditions of a request, in the order of their files' names.
func (f *filed) candidates(q *Request, inRange func(semver.Version) bool) ([]*candidate, error) {
	channels := f.channels
	var inChannel map[string]bool
	if len(q.Channels) > 0 {
		channels, inChannel = nil, map[string]bool{}
		for _, c := range f.channels {
			if !slices.Contains(q.Channels, c.name) {
				continue
			}
			channels = append(channels, c)
			for i := range c.entries {
				inChannel[c.entries[i].name] = true
			}
		}
	}
	follows := func(*candidate) bool { return true }
	if q.Installed != nil && !q.SelfCertified {
		var err error
		if follows, err = f.successors(q.Installed, channels); err != nil {
			return nil, fmt.Errorf("error finding upgrade edges: %w", err)
		}
	}
	var out []*candidate
	for i := range f.bundles {
		b := &f.bundles[i]
		if inChannel != nil && !inChannel[b.name] {
			continue
		}
		if inRange != nil && (b.versionErr != nil || !inRange(b.version.Version)) {
			continue
		}
		if follows(b) {
			out = append(out, b)
		}
	}
	return out, nil
}

// successors returns a function that reports whether a bundle may follow what is installed: an entry of the channels
// replaces, skips or skips by its range the installed bundle, or the bundle has its version and release.
func (f *filed) successors(i *Installed, channels []channel) (func(*candidate) bool, error) {
	installed, err := i.parse()
	if err != nil {
		return nil, err
	}
	// The range is asked for the version as the status has it, with its build metadata.
	version, err := versions.Parse(i.Version)
	if err != nil {
		return nil, fmt.Errorf("getting successorsPredicate: error parsing installed bundle version: %w", err)
	}
	next, skips := map[string]bool{}, f.skipping(version)
	for _, c := range channels {
		for k := range c.entries {
			e := &c.entries[k]
			if !next[e.name] && (e.names(i.Name) || skips(e)) {
				next[e.name] = true
			}
		}
	}
	return func(b *candidate) bool {
		return next[b.name] || b.versionErr == nil && b.version.Compare(installed) == 0
	}, nil
}
