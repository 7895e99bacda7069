package graph

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/versions"
)

// defaultMaxEdges is the default limit of drawn edges. A skipRange has an edge from every bundle in it, so that the
// number of edges can be quadratic.
const defaultMaxEdges = 1 << 20

// MermaidOptions configure [MermaidOptions.Write]. The zero value draws everything, with the same bytes as opm.
type MermaidOptions struct {
	// Package is the only package to draw; empty means all.
	Package string
	// MinimumEdge names the lowest bundle to draw; only its package is drawn then.
	MinimumEdge string
	// V0Semantics marks edges that OLM v0 does not follow: skipped bundles, further skips of them, and all other edges
	// to them.
	V0Semantics bool
	// Repair corrects opm's errors with several packages: a deprecation counts in its own package only, every
	// deprecated package is marked, and edges are marked by their order in the text.
	Repair bool
	// MaxEdges is the maximum number of edges; 0 means 1 << 20.
	MaxEdges int
	// Warn is called for parts that cannot be drawn.
	Warn func(message string)
}

// Write draws the channels of a catalog as a mermaid flow chart: packages and their channels as nested
// subgraphs, channels by name, their entries from the newest version to the oldest, each followed by the edges that
// lead to it. Names that would break the syntax are escaped. The catalog need not be valid, but every bundle must have
// a version. After an error the output is incomplete. More edges than the limit are a [declcfg.ErrLimit].
func (o MermaidOptions) Write(w io.Writer, c *declcfg.Catalog) error {
	m, err := newMermaid(c, o)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	if err := m.write(out); err != nil {
		return err
	}
	return out.Flush()
}

// The styles of marked elements.
const (
	mermaidHead = `graph LR
  classDef deprecated fill:#E8960F
  classDef skipped stroke:#FF0000,stroke-width:4px
  classDef deprecatedskipped fill:#E8960F,stroke:#FF0000,stroke-width:4px
`
	deprecatedPackageStyle = "fill:#989695"
	deprecatedChannelStyle = "fill:#DCD0FF"
	skippedLinkStyle       = "stroke:#FF0000,stroke-width:3px,stroke-dasharray:5;"
)

// mermaid is the state of a drawing.
type mermaid struct {
	MermaidOptions
	versions map[string]semver.Version // by bundle; the zero version for missing bundles
	marked   marks
	channels []*mermaidChannel // sorted by name, as opm counts them
	edges    int

	// Written after the subgraphs.
	packages   []string
	channelIDs []string
	nodes      map[string][]string // by class
}

// mermaidChannel is a channel with its drawn entries.
type mermaidChannel struct {
	*declcfg.Channel
	entries      []declcfg.ChannelEntry
	ranges       map[string]skipRange // those of entries by their text, which many may share
	firstLink    int
	skippedLinks []int
}

// skipRange is a range with those of the channel's entries that are in it.
type skipRange struct {
	matches versions.Matches
	err     error // of a range that cannot be parsed, which has no versions
}

// marks are the deprecated names; in a repaired drawing they are separate for each package.
type marks struct{ packages, channels, bundles map[[2]string]bool }

// scope returns the first part of the key of [marks].
func (m *mermaid) scope(pkg string) string {
	if m.Repair {
		return pkg
	}
	return ""
}

func newMermaid(c *declcfg.Catalog, o MermaidOptions) (*mermaid, error) {
	m := &mermaid{
		MermaidOptions: o, versions: make(map[string]semver.Version, len(c.Bundles)), nodes: map[string][]string{},
		marked: marks{map[[2]string]bool{}, map[[2]string]bool{}, map[[2]string]bool{}},
	}
	m.MaxEdges = cmp.Or(m.MaxEdges, defaultMaxEdges)
	for i := range c.Bundles {
		b := &c.Bundles[i]
		version, err := bundleVersion(b)
		if err != nil {
			return nil, err
		}
		m.versions[b.Name] = version
	}
	for _, d := range c.Deprecations {
		for _, e := range d.Entries {
			switch e.Reference.Schema {
			case declcfg.SchemaPackage:
				m.marked.packages[[2]string{"", d.Package}] = true
			case declcfg.SchemaChannel:
				m.marked.channels[[2]string{m.scope(d.Package), e.Reference.Name}] = true
			case declcfg.SchemaBundle:
				m.marked.bundles[[2]string{m.scope(d.Package), e.Reference.Name}] = true
			}
		}
	}
	return m, m.choose(c)
}

// bundleVersion returns the version of a bundle without its release, as opm draws it, with opm's error messages.
func bundleVersion(b *declcfg.Bundle) (semver.Version, error) {
	if err := b.CheckProperties(); err != nil {
		return semver.Version{}, err
	}
	p, err := b.PackageProperty()
	if err != nil {
		return semver.Version{}, fmt.Errorf("bundle %q %w", b.Name, err)
	}
	v, err := versions.Parse(p.Version)
	if err != nil {
		return v, fmt.Errorf("bundle %q has invalid version %q: %w", b.Name, p.Version, err)
	}
	return v, nil
}

// choose determines the channels and entries to draw.
func (m *mermaid) choose(c *declcfg.Catalog) error {
	all := make([]*declcfg.Channel, len(c.Channels))
	for i := range c.Channels {
		all[i] = &c.Channels[i]
	}
	if m.Repair {
		slices.SortStableFunc(all, func(a, b *declcfg.Channel) int {
			return 2*strings.Compare(a.Package, b.Package) + strings.Compare(a.Name, b.Name)
		})
	} else {
		// Channels of several packages may have the same name. The order of these in opm, which affects the numbers of
		// links, is the result of this unstable sort.
		sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	}
	floor, err := m.floor(all)
	if err != nil {
		return err
	}
	for _, ch := range all {
		if entries := floor.filter(ch); len(entries) > 0 || floor == nil && m.Package == "" {
			if m.Package == "" || m.Package == ch.Package {
				m.channels = append(m.channels, &mermaidChannel{ch, entries, m.rangesOf(entries), 0, nil})
			}
		}
	}
	return nil
}

// rangesOf parses the skipRanges of a channel.
func (m *mermaid) rangesOf(entries []declcfg.ChannelEntry) map[string]skipRange {
	all := make([]semver.Version, len(entries))
	for i := range entries {
		all[i] = m.versions[entries[i].Name]
	}
	sorted := versions.Sort(all)
	ranges := map[string]skipRange{}
	for i := range entries {
		text := entries[i].SkipRange
		if _, ok := ranges[text]; !ok && text != "" {
			r, err := versions.ParseRange(text)
			ranges[text] = skipRange{sorted.In(r), err}
		}
	}
	return ranges
}

// write writes the whole drawing.
func (m *mermaid) write(w *bufio.Writer) error {
	if m.V0Semantics {
		if err := m.countLinks(); err != nil {
			return err
		}
	}
	io.WriteString(w, mermaidHead) // an error of w is kept and returned by the last write
	byPackage := slices.Clone(m.channels)
	slices.SortStableFunc(byPackage, func(a, b *mermaidChannel) int { return strings.Compare(a.Package, b.Package) })
	m.edges = 0
	for i, ch := range byPackage {
		if i == 0 || byPackage[i-1].Package != ch.Package {
			if i > 0 {
				io.WriteString(w, "  end\n")
			}
			fmt.Fprintf(w, "  %%%% package %q\n  subgraph %s\n", ch.Package, mermaidLabel(ch.Package))
		}
		if err := m.writeChannel(w, ch); err != nil {
			return err
		}
	}
	if len(byPackage) > 0 {
		io.WriteString(w, "  end\n")
	}
	return m.styles(w)
}

func (m *mermaid) writeChannel(w *bufio.Writer, ch *mermaidChannel) error {
	id := m.id(ch.Package) + "-" + m.id(ch.Name)
	fmt.Fprintf(w, "    %%%% channel %q\n    subgraph %s[%s]\n", ch.Name, id, mermaidLabel(ch.Name))
	node := func(name string) string { return id + "-" + m.id(name) + "[" + mermaidLabel(name) + "]" }
	entries := m.newestFirst(ch.entries)
	skipped := map[string]bool{}
	link := ch.firstLink
	for _, e := range entries {
		m.warnOfRange(ch, e)
		to := node(e.Name)
		if _, err := fmt.Fprintf(w, "      %s\n", to); err != nil {
			return err
		}
		class := ""
		if m.marked.bundles[[2]string{m.scope(ch.Package), e.Name}] {
			class = "deprecated"
		}
		if skipped[e.Name] {
			class += "skipped"
		}
		if class != "" {
			m.nodes[class] = append(m.nodes[class], id+"-"+m.id(e.Name))
		}
		err := m.edgesOf(ch, e, func(from, label string, skips bool) error {
			if m.V0Semantics {
				// The first skip of a bundle is an upgrade from it and is not marked. Other edges to a skipped bundle
				// are.
				if skips && skipped[from] || !skips && skipped[e.Name] {
					ch.skippedLinks = append(ch.skippedLinks, link)
				}
				if skips {
					skipped[from] = true
				}
			}
			link++
			_, err := fmt.Fprintf(w, "      %s-- %s --> %s\n", node(from), label, to)
			return err
		})
		if err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, "    end\n")
	return err
}

// newestFirst sorts entries by decreasing version. For equal versions opm's order is the result of this unstable sort.
func (m *mermaid) newestFirst(entries []declcfg.ChannelEntry) []*declcfg.ChannelEntry {
	sorted := make([]*declcfg.ChannelEntry, len(entries))
	for i := range entries {
		sorted[i] = &entries[i]
	}
	sort.Slice(sorted, func(i, j int) bool { return m.versions[sorted[i].Name].GT(m.versions[sorted[j].Name]) })
	return sorted
}

// edgesOf calls fn for the edges that lead to an entry: skips, then skipRange, then replaces. skips is true for the
// first group.
func (m *mermaid) edgesOf(ch *mermaidChannel, e *declcfg.ChannelEntry,
	fn func(from, label string, skips bool) error) error {
	edge := func(from, label string, skips bool) error {
		if m.edges++; m.edges > m.MaxEdges {
			return fmt.Errorf("package %q, channel %q: more than %d edges: %w", ch.Package, ch.Name, m.MaxEdges,
				declcfg.ErrLimit)
		}
		return fn(from, label, skips)
	}
	for _, skip := range e.Skips {
		if err := edge(skip, "skip", true); err != nil {
			return err
		}
	}
	if e.SkipRange != "" {
		label := mermaidLabel("skipRange(" + e.SkipRange + ")")
		for i := range ch.ranges[e.SkipRange].matches.All() {
			if err := edge(ch.entries[i].Name, label, false); err != nil {
				return err
			}
		}
	}
	if e.Replaces != "" {
		return edge(e.Replaces, "replace", false)
	}
	return nil
}

// warnOfRange warns about a skipRange that cannot be drawn.
func (m *mermaid) warnOfRange(ch *mermaidChannel, e *declcfg.ChannelEntry) {
	if err := ch.ranges[e.SkipRange].err; err != nil && m.Warn != nil {
		m.Warn(fmt.Sprintf("ignoring invalid SkipRange for package/edge %q/%q: %v", ch.Package, e.Name, err))
	}
}

// countLinks determines the number of the first link of every channel. opm numbers links in the order of channel names,
// mermaid in that of the text.
func (m *mermaid) countLinks() error {
	for _, ch := range m.channels {
		ch.firstLink = m.edges
		for i := range ch.entries {
			if err := m.edgesOf(ch, &ch.entries[i], func(string, string, bool) error { return nil }); err != nil {
				return err
			}
		}
	}
	return nil
}
