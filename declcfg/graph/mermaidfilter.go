package graph

import (
	"fmt"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/versions"
)

// floor is the lowest bundle to draw. A nil floor draws everything.
type floor struct {
	bundle   string
	version  semver.Version
	pkg      string
	versions map[string]semver.Version
}

// floor finds the bundle and its package: that of the first channel with such an entry.
func (m *mermaid) floor(channels []*declcfg.Channel) (*floor, error) {
	if m.MinimumEdge == "" {
		return nil, nil
	}
	version, ok := m.versions[m.MinimumEdge]
	if !ok {
		return nil, fmt.Errorf("unknown minimum edge name: %q", m.MinimumEdge)
	}
	f := &floor{bundle: m.MinimumEdge, version: version, versions: m.versions}
	for _, ch := range channels {
		for _, e := range ch.Entries {
			if e.Name == m.MinimumEdge {
				f.pkg = ch.Package
				return f, nil
			}
		}
	}
	return f, nil
}

// filter returns the entries of a channel that are not below the floor, without edges from below. The floor's own entry
// has no edges.
func (f *floor) filter(ch *declcfg.Channel) []declcfg.ChannelEntry {
	switch {
	case f == nil:
		return ch.Entries
	case f.pkg != "" && f.pkg != ch.Package:
		return nil
	}
	var kept []declcfg.ChannelEntry
	for _, e := range ch.Entries {
		if f.versions[e.Name].LT(f.version) {
			continue
		}
		out := declcfg.ChannelEntry{Name: e.Name}
		if e.Name != f.bundle {
			if f.versions[e.Replaces].GTE(f.version) {
				out.Replaces = e.Replaces
			}
			for _, skip := range e.Skips {
				if f.versions[skip].GTE(f.version) {
					out.Skips = append(out.Skips, skip)
				}
			}
			if within, err := versions.ParseRange(e.SkipRange); err == nil && within.Contains(f.version) {
				out.SkipRange = e.SkipRange
			}
		}
		kept = append(kept, out)
	}
	return kept
}
