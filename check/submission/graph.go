package submission

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/jsonscan"
	"github.com/operator-bindery/bindery/internal/versions"
)

// The modes of upgrade graphs.
const (
	replacesMode = "replaces-mode"
	semverMode   = "semver-mode"
)

// graph has the upgrades among the bundles of a channel. A bundle is named by its directory.
type graph struct {
	channel  string
	bundles  []*submitted // sorted
	upgrades *declcfg.Upgrades
	odd      []*fault            // edges that do not count
	itself   map[*submitted]bool // those whose range has their own version
}

// mode returns the mode of the operator's graph.
func (o *operator) mode() (mode string, bad *fault) {
	value := jsonscan.Member(o.ci.json, "updateGraph")
	text, ok := textOf(value)
	switch {
	case o.ciFault != nil:
		return "", o.ciFault
	case len(value) == 0, string(value) == "null":
		return replacesMode, nil
	case ok && (text == replacesMode || text == semverMode):
		return text, nil
	}
	return "", faultOf(o.ciFile, 1, "updateGraph is %s, and there are %s and %s", value, replacesMode, semverMode)
}

// graph returns that of a channel.
func (o *operator) graph(channel string) (*graph, *fault) {
	mode, bad := o.mode()
	if bad != nil {
		return nil, bad
	}
	g := &graph{channel: channel, itself: map[*submitted]bool{}}
	for _, b := range o.bundles {
		m, bad := b.membership()
		switch {
		case bad != nil:
			return nil, bad
		case !m.in[channel]:
		case b.csvFault != nil:
			return nil, b.csvFault
		case b.wrong != nil:
			return nil, b.wrong
		default:
			g.bundles = append(g.bundles, b)
		}
	}
	entries := make([]declcfg.ChannelEntry, len(g.bundles))
	byVersion := map[string][]*submitted{}
	for i, b := range g.bundles {
		entries[i].Name = b.name
		byVersion[b.version] = append(byVersion[b.version], b)
	}
	for i, b := range g.bundles {
		if mode == semverMode {
			if i > 0 {
				entries[i].Replaces = g.bundles[i-1].name
			}
			continue
		}
		if bad := g.edges(&entries[i], b, byVersion); bad != nil {
			return nil, bad
		}
	}
	g.upgrades = declcfg.UpgradesOf(entries)
	return g, nil
}

// edges adds the bundles of the channel that a bundle is an upgrade of. Only the version in a name counts.
func (g *graph) edges(e *declcfg.ChannelEntry, b *submitted, byVersion map[string][]*submitted) *fault {
	names := []json.RawMessage{b.replaces}
	jsonscan.Elements(b.skips, func(v []byte) bool {
		names = append(names, v)
		return true
	})
	for i, value := range names {
		if len(value) == 0 || string(value) == "null" {
			continue
		}
		field := "spec.replaces"
		if i > 0 {
			field = fmt.Sprintf("spec.skips[%d]", i-1)
		}
		text, ok := textOf(value)
		if !ok {
			return faultOf(b.csv, 1, "%s is %s, and it is to be text", field, kindOf(value))
		}
		version, err := nameVersion(text)
		if err != nil {
			return faultOf(b.csv, 1, "%s: %v", field, err)
		}
		for _, from := range byVersion[version] {
			if i == 0 && e.Replaces == "" {
				e.Replaces = from.name
			} else {
				e.Skips = append(e.Skips, from.name)
			}
		}
	}
	text, _ := textOf(b.skipRange)
	if text == "" {
		return nil
	}
	skipped, err := versions.ParseRange(text)
	if err != nil {
		g.odd = append(g.odd, faultOf(b.csv, 1, "the annotation olm.skipRange: %v", err))
		return nil
	}
	for _, from := range g.bundles {
		switch {
		case from.parsed == nil:
			return faultOf(from.csv, 1, "the version %q of the bundle %s is no semantic version, and %s has a range of versions",
				from.version, from.title(), b.title())
		case !skipped.Contains(*from.parsed):
		case from == b:
			g.itself[b] = true
			g.odd = append(g.odd, faultOf(b.csv, 1, "the range %q of olm.skipRange has the version %s of the bundle itself", text,
				b.version))
		default:
			e.Skips = append(e.Skips, from.name)
		}
	}
	return nil
}

// dangling returns the bundles that none is an upgrade of, but for the highest one.
func (g *graph) dangling() (out []*submitted) {
	if len(g.bundles) == 0 {
		return nil
	}
	heads := g.upgrades.Heads()
	for _, b := range g.bundles[:len(g.bundles)-1] {
		if slices.Contains(heads, b.name) && !g.itself[b] {
			out = append(out, b)
		}
	}
	return out
}

// channels returns the channels of all bundles.
func (o *operator) channels() (names []string, bad *fault) {
	for _, b := range o.bundles {
		own, bad := b.membership()
		if bad != nil {
			return nil, bad
		}
		names = append(names, own.names...)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
