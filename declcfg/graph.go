package declcfg

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/declcfg/property"
	"github.com/operator-bindery/bindery/internal/fault"
)

// Graph is a catalog as packages, channels and upgrade edges. Its nodes point into the catalog that it was built from,
// which must not change while the graph is in use. A graph may be read concurrently.
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
	PackageProperty property.Package
	Version         VersionRelease
	// Deprecation is the message of the bundle's deprecation; nil if it is not deprecated.
	Deprecation *string

	inChannel bool
}

// ChannelNode is a channel with its entries.
type ChannelNode struct {
	*Channel
	Package *PackageNode
	Entries []*entryNode // by name
	// Deprecation is the message of the channel's deprecation; nil if it is not deprecated.
	Deprecation *string

	entries map[string]*entryNode
}

// entryNode is a bundle in a channel.
type entryNode struct {
	*ChannelEntry
	Channel *ChannelNode
	// Bundle is nil if the package has no bundle of the entry's name.
	Bundle *BundleNode

	index int // in the channel's blob
}

// Graph returns the catalog as packages, channels and upgrade edges. Its error is a *[ValidationError] with everything
// that keeps the blobs from forming a graph: unknown, missing and duplicate names. It does not check the graph itself:
// see [Catalog.Validate].
func (c *Catalog) Graph() (*Graph, error) { return graphOf(c, false) }

// GraphAnyImages is like [Catalog.Graph] without the rule that images are pull specs, see [Catalog.ValidateAnyImages].
func (c *Catalog) GraphAnyImages() (*Graph, error) { return graphOf(c, true) }

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
func (c *ChannelNode) Entry(name string) *entryNode { return c.entries[name] }

// Heads returns the entries that no other entry replaces or skips, by name. A valid channel has one.
func (c *ChannelNode) Heads() []*entryNode { return c.heads(c.Upgrades()) }

func (c *ChannelNode) heads(u *Upgrades) []*entryNode {
	return slices.DeleteFunc(slices.Clone(c.Entries), func(e *entryNode) bool { return !u.IsHead(e.Name) })
}

// Head returns the only head of the channel, or an error that names all of them.
func (c *ChannelNode) Head() (*entryNode, error) { return c.head(c.Upgrades()) }

func (c *ChannelNode) head(u *Upgrades) (*entryNode, error) {
	heads := c.heads(u)
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
	return nil, fmt.Errorf("multiple channel heads found in graph: %s", joinNames(names, ", "))
}

// cycle describes a cycle of upgrade edges in a channel without a head: every entry is then replaced or skipped by
// another.
func (c *ChannelNode) cycle() string {
	type edge struct {
		from *entryNode
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
	// Going up from any entry ends in a cycle. The error names it in the opposite direction, as "replaces" reads.
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

// checkChain checks that every entry is reachable from the head by replaces or skipped by some entry, and that replaces
// has no cycle. The walk ends at an edge to a skipped bundle: no upgrade takes that edge. It takes time linear in the
// number of edges.
func (c *ChannelNode) checkChain() error {
	u := c.Upgrades()
	head, err := c.head(u)
	if err != nil {
		return err
	}
	chain, again := u.Chain(head.Name, u.Skipped)
	if again >= 0 {
		return fmt.Errorf("detected cycle in replaces chain of upgrade graph: %s",
			joinNames(append(chain[again:], chain[again]), " -> "))
	}
	reached := make(map[string]bool, len(chain))
	for _, name := range chain {
		reached[name] = true
	}
	var stranded []string
	for _, e := range c.Entries {
		if !reached[e.Name] && !u.Skipped(e.Name) {
			stranded = append(stranded, e.Name)
		}
	}
	if len(stranded) > 0 {
		return fmt.Errorf("channel contains one or more stranded bundles: %s", joinNames(stranded, ", "))
	}
	return nil
}
