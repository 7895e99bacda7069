package declcfg

import (
	"cmp"
	"slices"
	"strings"

	"github.com/operator-bindery/bindery/internal/fault"
)

// graphBuilder builds a graph and collects the problems of blobs.
type graphBuilder struct {
	graph    *Graph
	problems *problemList
	images   map[string]error // checked image references
	// anyImages accepts images that are not pull specs.
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
	node := &ChannelNode{Channel: c, Package: pkg, entries: make(map[string]*entryNode, len(c.Entries))}
	for i := range c.Entries {
		e := &entryNode{ChannelEntry: &c.Entries[i], Channel: node, index: i}
		if node.entries[e.Name] != nil {
			b.reportAt(c, []any{"entries", i}, RuleDuplicate,
				"invalid package %q, channel %q: duplicate entry %q", c.Package, c.Name, e.Name)
			continue
		}
		node.entries[e.Name] = e
		node.Entries = append(node.Entries, e)
	}
	slices.SortFunc(node.Entries, func(a, b *entryNode) int { return cmp.Compare(a.Name, b.Name) })
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
		b.reportAt(bundle, bundle.packagePath("packageName"), RuleVersion, "package %q does not match %q property %q",
			bundle.Package, PropertyPackage, property.PackageName)
	}
	if node.Version, err = bundle.versionRelease(property); err != nil {
		b.reportAt(bundle, bundle.packagePath("version"), RuleVersion, "%v", err)
	}
}

// packagePath returns the path of a field of the first olm.package property; nil if there is none.
func (b *Bundle) packagePath(field string) []any {
	for i := range b.Properties {
		if b.Properties[i].Type == PropertyPackage {
			return []any{"properties", i, "value", field}
		}
	}
	return nil
}

// checkProperties reports undecodable properties.
func (b *graphBuilder) checkProperties(bundle *Bundle) bool {
	ok := true
	for e := range bundle.badProperties() {
		ok = false
		opm := fault.Clip(bundle.opmPropertiesError(e), maxMessage)
		e.problems(func(path []any, text string) {
			b.problems.report(Problem{Position: bundle.Position(), Package: bundle.Package, Bundle: bundle.Name,
				Rule: RuleProperty, stage: stageBlobs, path: path, opm: opm}, "bundle %q: %s", bundle.Name, text)
		})
	}
	return ok
}

func (b *graphBuilder) checkImages(bundle *Bundle) {
	if err := b.checkImage(bundle.Image); err != nil {
		b.reportAt(bundle, []any{"image"}, RuleImage, "package %q bundle %q image: invalid image pull spec %q: %v",
			bundle.Package, bundle.Name, bundle.Image, err)
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

// link connects the entries of channels with the bundles of their package.
func (b *graphBuilder) link() {
	missing := map[*ChannelNode][]*entryNode{}
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
				b.report(bundle.Bundle, RuleBundleChannel, "package %q, bundle %q not found in any channel entries",
					pkg.Name, bundle.Name)
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
					"no %s blobs found in package %q for %s entries [%s]", SchemaBundle, pkg.Name, SchemaChannel,
					bounded(joinNames(names, " ")))
			}
		}
	}
}
