package declcfg

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// Graph is a catalog seen as packages, channels and upgrade edges. Its nodes point into the catalog that it was made
// of, which must not be changed while the graph is in use. A graph may be read concurrently.
type Graph struct {
	Packages []*PackageNode // by name

	byName map[string]*PackageNode
}

// PackageNode is a package with its channels and bundles.
type PackageNode struct {
	*Package
	Channels []*ChannelNode // by name
	Bundles  []*BundleNode  // by name
	// Deprecation is the message of the package's deprecation; nil if it is not deprecated.
	Deprecation *string

	channels map[string]*ChannelNode
	bundles  map[string]*BundleNode
}

// BundleNode is a bundle with what is derived from its properties.
type BundleNode struct {
	*Bundle
	// PackageProperty is the value of the bundle's olm.package property.
	PackageProperty PackageProperty
	Version         VersionRelease
	// Deprecation is the message of the bundle's deprecation; nil if it is not deprecated.
	Deprecation *string

	inChannel bool
}

// ChannelNode is a channel with its entries.
type ChannelNode struct {
	*Channel
	Package *PackageNode
	Entries []*Entry // by name
	// Deprecation is the message of the channel's deprecation; nil if it is not deprecated.
	Deprecation *string

	entries map[string]*Entry
}

// Entry is a bundle's place in a channel.
type Entry struct {
	*ChannelEntry
	Channel *ChannelNode
	// Bundle is nil if the package has no bundle of the entry's name.
	Bundle *BundleNode

	index int // in the channel's blob
}

// NewGraph makes the graph of a catalog. Its error is a *[ValidationError] with everything that keeps the blobs from
// forming a graph: unknown, missing and duplicate names. It does not check the graph itself: see [Validate].
func NewGraph(c *Catalog) (*Graph, error) { return graphOf(c, false) }

// NewGraphAnyImages is [NewGraph] without the rule that images are pull specs, see [ValidateAnyImages].
func NewGraphAnyImages(c *Catalog) (*Graph, error) { return graphOf(c, true) }

func graphOf(c *Catalog, anyImages bool) (*Graph, error) {
	var problems problemList
	g := newGraph(c, anyImages, &problems)
	if err := problems.err(); err != nil {
		return nil, err
	}
	return g, nil
}

// Package returns a package by name; nil if there is none.
func (g *Graph) Package(name string) *PackageNode { return g.byName[name] }

// Channel returns a channel by name; nil if there is none.
func (p *PackageNode) Channel(name string) *ChannelNode { return p.channels[name] }

// Default returns the default channel; nil if there is none of that name.
func (p *PackageNode) Default() *ChannelNode { return p.channels[p.DefaultChannel] }

// Entry returns the entry of a bundle; nil if it is not in the channel.
func (c *ChannelNode) Entry(name string) *Entry { return c.entries[name] }

// Heads returns the entries that no other entry replaces or skips, by name. A valid channel has one.
func (c *ChannelNode) Heads() []*Entry {
	incoming := make(map[string]bool, len(c.Entries))
	for _, e := range c.Entries {
		if e.Replaces != "" {
			incoming[e.Replaces] = true
		}
		for _, skip := range e.Skips {
			incoming[skip] = true
		}
	}
	var heads []*Entry
	for _, e := range c.Entries {
		if !incoming[e.Name] {
			heads = append(heads, e)
		}
	}
	return heads
}

// Head returns the one head of the channel, or an error that names all of them.
func (c *ChannelNode) Head() (*Entry, error) {
	heads := c.Heads()
	switch len(heads) {
	case 0:
		return nil, errors.New("no channel head found in graph")
	case 1:
		return heads[0], nil
	}
	names := make([]string, len(heads))
	for i, h := range heads {
		names[i] = h.Name
	}
	return nil, fmt.Errorf("multiple channel heads found in graph: %s", joined(names, ", "))
}

// cycle describes a cycle of upgrade edges in a channel without a head: there every entry is replaced or skipped by
// another.
func (c *ChannelNode) cycle() string {
	type edge struct {
		from *Entry
		verb string
	}
	above := make(map[string]edge, len(c.Entries))
	for _, e := range c.Entries {
		for _, skip := range e.Skips {
			if _, ok := above[skip]; !ok {
				above[skip] = edge{e, "skips"}
			}
		}
	}
	for _, e := range c.Entries {
		if e.Replaces != "" {
			above[e.Replaces] = edge{e, "replaces"}
		}
	}
	// The way up from any entry ends in a cycle. The error names it in the opposite direction, as "replaces" reads.
	at, way := map[string]int{}, []string{}
	var verbs []string
	for name := c.Entries[0].Name; ; {
		if start, ok := at[name]; ok {
			way, verbs = append(way[start:], name), verbs[start:]
			break
		}
		at[name] = len(way)
		way = append(way, name)
		verbs = append(verbs, above[name].verb)
		name = above[name].from.Name
	}
	var b strings.Builder
	b.WriteString("cycle: " + fault.Quote(way[len(way)-1]))
	for i := len(way) - 2; i >= 0; i-- {
		if told := len(way) - 2 - i; told == maxNames && i > 1 {
			fmt.Fprintf(&b, " ... (%d more)", i)
			i = 0
		}
		b.WriteString(" " + verbs[i] + " " + fault.Quote(way[i]))
	}
	return b.String()
}

// checkChain checks that from the head every entry is reached along replaces, or skipped by some entry, and that
// replaces makes no cycle. The walk ends at an edge to a bundle that is skipped: no upgrade goes that way.
// It takes time linear in the number of edges.
func (c *ChannelNode) checkChain() error {
	cur, err := c.Head()
	if err != nil {
		return err
	}
	skipped := map[string]bool{}
	for _, e := range c.Entries {
		for _, skip := range e.Skips {
			skipped[skip] = true
		}
	}
	chain := []string{cur.Name}
	at := map[string]int{cur.Name: 0}
	for cur != nil && cur.Replaces != "" {
		if i, ok := at[cur.Replaces]; ok {
			return fmt.Errorf("detected cycle in replaces chain of upgrade graph: %s", joined(append(chain[i:], cur.Replaces), " -> "))
		}
		if skipped[cur.Replaces] {
			break
		}
		at[cur.Replaces] = len(chain)
		chain = append(chain, cur.Replaces)
		cur = c.entries[cur.Replaces]
	}
	var stranded []string
	for _, e := range c.Entries {
		if _, reached := at[e.Name]; !reached && !skipped[e.Name] {
			stranded = append(stranded, e.Name)
		}
	}
	if len(stranded) > 0 {
		return fmt.Errorf("channel contains one or more stranded bundles: %s", joined(stranded, ", "))
	}
	return nil
}

// graphBuilder makes a graph and collects what is wrong with the blobs on the way.
type graphBuilder struct {
	graph    *Graph
	problems *problemList
	images   map[string]error // image references that were checked
	// anyImages takes images for what they are.
	anyImages bool
}

func newGraph(c *Catalog, anyImages bool, problems *problemList) *Graph {
	b := graphBuilder{
		anyImages: anyImages,
		problems:  problems,
		graph:     &Graph{byName: make(map[string]*PackageNode, len(c.Packages))},
		images:    map[string]error{},
	}
	for i := range c.Packages {
		b.addPackage(&c.Packages[i])
	}
	for i := range c.Channels {
		b.addChannel(&c.Channels[i])
	}
	for i := range c.Bundles {
		b.addBundle(&c.Bundles[i])
	}
	b.link()
	b.deprecate(c.Deprecations)
	for _, p := range b.graph.Packages {
		slices.SortFunc(p.Channels, func(a, b *ChannelNode) int { return cmp.Compare(a.Name, b.Name) })
		slices.SortFunc(p.Bundles, func(a, b *BundleNode) int { return cmp.Compare(a.Name, b.Name) })
	}
	slices.SortFunc(b.graph.Packages, func(a, b *PackageNode) int { return cmp.Compare(a.Name, b.Name) })
	return b.graph
}

// report adds a problem of a blob.
func (b *graphBuilder) report(blob Blob, rule, format string, args ...any) {
	b.reportAt(blob, nil, rule, format, args...)
}

// reportAt adds a problem of the value at a path in a blob.
func (b *graphBuilder) reportAt(blob Blob, path []any, rule, format string, args ...any) {
	p := Problem{Position: blob.Position(), Package: blob.BlobPackage(), Rule: rule, stage: stageBlobs, path: path}
	switch blob.(type) {
	case *Channel:
		p.Channel = blob.BlobName()
	case *Bundle:
		p.Bundle = blob.BlobName()
	}
	b.problems.report(p, format, args...)
}

func (b *graphBuilder) addPackage(p *Package) {
	switch {
	case p.Name == "":
		b.report(p, RulePackageName, "config contains package with no name")
		return
	case b.graph.byName[p.Name] != nil:
		b.report(p, RuleDuplicate, "duplicate package %q", p.Name)
		return
	}
	if errs := labelErrors(p.Name); len(errs) > 0 {
		b.report(p, RulePackageName, "invalid package name %q: [%s]", p.Name, strings.Join(errs, " "))
	}
	node := &PackageNode{Package: p, channels: map[string]*ChannelNode{}, bundles: map[string]*BundleNode{}}
	b.graph.byName[p.Name] = node
	b.graph.Packages = append(b.graph.Packages, node)
}

func (b *graphBuilder) addChannel(c *Channel) {
	pkg := b.graph.byName[c.Package]
	switch {
	case pkg == nil:
		b.report(c, RuleUnknownPackage, "unknown package %q for channel %q", c.Package, c.Name)
		return
	case c.Name == "":
		b.report(c, RuleChannelName, "package %q contains channel with no name", c.Package)
		return
	case pkg.channels[c.Name] != nil:
		b.report(c, RuleDuplicate, "package %q has duplicate channel %q", c.Package, c.Name)
		return
	}
	node := &ChannelNode{Channel: c, Package: pkg, entries: make(map[string]*Entry, len(c.Entries))}
	for i := range c.Entries {
		e := &Entry{ChannelEntry: &c.Entries[i], Channel: node, index: i}
		if node.entries[e.Name] != nil {
			b.reportAt(c, []any{"entries", i}, RuleDuplicate,
				"invalid package %q, channel %q: duplicate entry %q", c.Package, c.Name, e.Name)
			continue
		}
		node.entries[e.Name] = e
		node.Entries = append(node.Entries, e)
	}
	slices.SortFunc(node.Entries, func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
	pkg.channels[c.Name] = node
	pkg.Channels = append(pkg.Channels, node)
}

func (b *graphBuilder) addBundle(bundle *Bundle) {
	pkg := b.graph.byName[bundle.Package]
	switch {
	case bundle.Package == "":
		b.report(bundle, RuleUnknownPackage, "package name must be set for bundle %q", bundle.Name)
		return
	case pkg == nil:
		b.report(bundle, RuleUnknownPackage, "unknown package %q for bundle %q", bundle.Package, bundle.Name)
		return
	case pkg.bundles[bundle.Name] != nil:
		b.report(bundle, RuleDuplicate, "package %q has duplicate bundle %q", bundle.Package, bundle.Name)
		return
	}
	node := &BundleNode{Bundle: bundle}
	pkg.bundles[bundle.Name] = node
	pkg.Bundles = append(pkg.Bundles, node)
	if !b.checkProperties(bundle) {
		return
	}
	if !b.anyImages {
		b.checkImages(bundle)
	}
	property, err := bundle.PackageProperty()
	if err != nil {
		b.report(bundle, RuleVersion, "package %q bundle %q %v", bundle.Package, bundle.Name, err)
		return
	}
	node.PackageProperty = property
	if property.PackageName != bundle.Package {
		b.report(bundle, RuleVersion, "package %q does not match %q property %q", bundle.Package, PropertyPackage, property.PackageName)
	}
	if node.Version, err = bundle.versionRelease(property); err != nil {
		b.report(bundle, RuleVersion, "%v", err)
	}
}

// checkProperties reports the first property that cannot be read.
func (b *graphBuilder) checkProperties(bundle *Bundle) bool {
	first := bundle.badProperty()
	if first == nil {
		return true
	}
	b.reportAt(bundle, []any{"properties", first.index}, RuleProperty, "%v", bundle.propertiesError(first))
	return false
}

func (b *graphBuilder) checkImages(bundle *Bundle) {
	if err := b.checkImage(bundle.Image); err != nil {
		b.reportAt(bundle, []any{"image"}, RuleImage,
			"package %q bundle %q image: invalid image pull spec %q: %v", bundle.Package, bundle.Name, bundle.Image, err)
	}
	for i, r := range bundle.RelatedImages {
		if err := b.checkImage(r.Image); err != nil {
			b.reportAt(bundle, []any{"relatedImages", i, "image"}, RuleImage,
				"package %q bundle %q relatedImages[%d].image: invalid image pull spec %q: %v",
				bundle.Package, bundle.Name, i, r.Image, err)
		}
	}
}

func (b *graphBuilder) checkImage(image string) error {
	if image == "" {
		return nil
	}
	err, seen := b.images[image]
	if !seen {
		err = checkPullSpec(image)
		b.images[image] = err
	}
	return err
}

// link joins the entries of channels to the bundles of their package.
func (b *graphBuilder) link() {
	missing := map[*ChannelNode][]*Entry{}
	for _, pkg := range b.graph.Packages {
		for _, channel := range pkg.Channels {
			for _, e := range channel.Entries {
				if e.Bundle = pkg.bundles[e.Name]; e.Bundle == nil {
					missing[channel] = append(missing[channel], e)
					continue
				}
				e.Bundle.inChannel = true
			}
		}
		for _, bundle := range pkg.Bundles {
			if !bundle.inChannel {
				b.report(bundle.Bundle, RuleBundleChannel, "package %q, bundle %q not found in any channel entries", pkg.Name, bundle.Name)
			}
		}
	}
	for _, pkg := range b.graph.Packages {
		for _, channel := range pkg.Channels {
			if len(missing[channel]) > 0 {
				var names []string
				for _, e := range missing[channel] {
					names = append(names, e.Name)
				}
				b.reportAt(channel.Channel, []any{"entries", missing[channel][0].index}, RuleEntryBundle,
					"no %s blobs found in package %q for %s entries [%s]", SchemaBundle, pkg.Name, SchemaChannel, bounded(joined(names, " ")))
			}
		}
	}
}
