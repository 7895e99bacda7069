package rules

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/lifecycle"
	"github.com/operator-bindery/bindery/olmv1/resolve"
)

// CatalogSubject is a catalog to check.
type CatalogSubject struct {
	// FS has the files of the catalog, Load how they are read.
	FS   fs.FS
	Load declcfg.LoadOptions
	// Image is the image that the catalog is in; nil for a directory.
	Image *Image
	// OCP is the OpenShift version that the catalog is for, as v4.17; if empty it follows from the base image.
	OCP string
	// Unread are the links and devices for which the files of the image could not be read; FS is empty then.
	Unread []Finding
	// Released has the channels of the released catalog, for the pruning check; nil: not checked.
	Released *declcfg.Catalog
	// SingleOwn and Release are the gates SingleOwnNamespaceInstallSupport and BundleReleaseSupport, which are off by
	// default.
	SingleOwn, Release bool
	// Related, unless nil, is called for each related image of a bundle that is not released, with its place.
	Related func(image string, at Finding)
	// Manifests finds what OLM v1 refuses in the manifests that a bundle's olm.bundle.object properties have, by the
	// rules on bundles. It is nil if the images of the bundles are read: then their manifests are checked, and those in
	// the catalog are not.
	Manifests func(ctx context.Context, r *Run, b *declcfg.Bundle) error
	// Upgrades, unless nil, is called for each package with what resolves in it, and its bundles without their manifests.
	Upgrades func(*resolve.Resolver, []*declcfg.Bundle)
}

// catalogCheck is a catalog in a run.
type catalogCheck struct {
	*CatalogSubject
	run   *Run
	index *declcfg.Index
	// all are the blobs, in the order of the files; documents are those of each package.
	all       []declcfg.IndexedDocument
	documents map[string][]declcfg.IndexedDocument
	ocp       ocpVersion
	// noPackage is set if the rule of Konflux that a catalog has a package is broken.
	noPackage bool
	// channels are those of each package; nil without a released catalog to compare them with.
	channels map[string][]*declcfg.Channel
}

// packageCheck is a package of a catalog. Its bundles have no manifests.
type packageCheck struct {
	*catalogCheck
	name       string
	pkg        *declcfg.Package
	channels   []*declcfg.Channel
	bundles    []*declcfg.Bundle
	deprecated []*declcfg.Deprecations
	lifecycles int
	// entries are the channels of each bundle; nil before the first bundle.
	entries map[string]memberships
}

// memberships are the names of the channels that have a bundle as an entry, and of those whose head it is.
type memberships struct{ channels, heads []string }

// membershipsOf returns those of a bundle, in the order of the channels, which are known before the first bundle.
func (p *packageCheck) membershipsOf(bundle string) memberships {
	if p.entries == nil {
		p.entries = map[string]memberships{}
		for _, c := range p.channels {
			seen := map[string]bool{}
			for _, e := range c.Entries {
				if !seen[e.Name] {
					seen[e.Name] = true
					m := p.entries[e.Name]
					m.channels = append(m.channels, c.Name)
					p.entries[e.Name] = m
				}
			}
			for _, name := range c.Heads() {
				m := p.entries[name]
				if n := len(m.heads); n == 0 || m.heads[n-1] != c.Name {
					m.heads = append(m.heads, c.Name)
					p.entries[name] = m
				}
			}
		}
	}
	return p.entries[bundle]
}

// bundleCheck is a bundle of a package, complete. The package's channels are known already.
type bundleCheck struct {
	*packageCheck
	bundle *declcfg.Bundle
	// manifests is set if the catalog has the manifests of the bundle; objects without a ClusterServiceVersion are
	// not all of them.
	manifests bool
}

// CatalogRules returns the rules on catalogs and images.
func CatalogRules() []Rule {
	return slices.Concat(opmRules(), RulesOf(fileChecks), RulesOf(blobChecks), RulesOf(packageChecks),
		RulesOf(bundleChecks), RulesOf(konfluxChecks), RulesOf(prunedChecks), RulesOf(imageChecks),
		[]Rule{RelatedAccessible, RelatedMediaType, RuleUpgrade}, waiverRules)
}

// CheckCatalog checks a catalog: its image, its files, and then one package after the other, so that no more than one
// bundle is in memory with its manifests. What is wrong with the catalog is in the run; the error is that of the
// context or of reading a file.
func (r *Run) CheckCatalog(ctx context.Context, s CatalogSubject) error {
	c := &catalogCheck{CatalogSubject: &s, run: r}
	c.ocp = c.openShift()
	if err := r.CheckImage(ctx, s.Image); err != nil {
		return err
	}
	if err := errors.Join(c.konflux(ctx), c.opm(ctx), Each(ctx, r, fileChecks, c)); err != nil {
		return err
	}
	if len(s.Unread) > 0 {
		return nil
	}
	load := s.Load
	load.Schemaless = true // the rules of opm and of OLM v1 say so in their own ways
	x, err := declcfg.NewIndex(ctx, s.FS, load)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		r.emitOf(RulesOf(blobChecks)) // the rules count as run: loading found what breaks them
		return c.unreadable("", err)
	}
	c.channels = map[string][]*declcfg.Channel{}
	c.index, c.all, c.documents = x, x.Documents(), map[string][]declcfg.IndexedDocument{}
	for _, d := range c.all {
		c.documents[d.Package] = append(c.documents[d.Package], d)
	}
	if err := Each(ctx, r, blobChecks, c); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(c.documents)) {
		if name != "" {
			if err := c.checkPackage(ctx, name); err != nil {
				return err
			}
		}
	}
	if err := c.pruned(ctx); err != nil {
		return err
	}
	r.findLines(s.FS, s.Load.Limits)
	return nil
}

// checkPackage reads a package and calls the rules on its bundles and on itself.
func (c *catalogCheck) checkPackage(ctx context.Context, name string) error {
	p := &packageCheck{catalogCheck: c, name: name}
	for b, err := range c.index.PackageBlobs(ctx, name) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			return c.unreadable(name, err)
		}
		if err := p.add(ctx, b); err != nil {
			return err
		}
	}
	if c.Released != nil && (p.pkg != nil || len(p.channels) > 0) {
		c.channels[name] = p.channels
	}
	if err := p.upgrades(ctx); err != nil {
		return err
	}
	return Each(ctx, c.run, packageChecks, p)
}

// upgrades passes on the package as OLM v1 reads it.
func (p *packageCheck) upgrades(ctx context.Context) error {
	if p.Upgrades == nil {
		return nil
	}
	blobs := func(yield func(declcfg.Blob, error) bool) {
		for _, c := range p.channels {
			if !yield(c, nil) {
				return
			}
		}
		for _, b := range p.bundles {
			if !yield(b, nil) {
				return
			}
		}
	}
	r, err := resolve.NewResolver(ctx, []resolve.Catalog{{Blobs: blobs}}, p.name, p.gates())
	if err == nil {
		p.Upgrades(r, p.bundles)
	}
	return err
}

// add adds a blob of the package, and calls the rules on it if it is a bundle.
func (p *packageCheck) add(ctx context.Context, b declcfg.Blob) error {
	switch b := b.(type) {
	case *declcfg.Package:
		p.pkg = b
	case *declcfg.Channel:
		p.channels = append(p.channels, b)
	case *declcfg.Deprecations:
		p.deprecated = append(p.deprecated, b)
	case *declcfg.Bundle:
		return p.checkBundle(ctx, b)
	case *declcfg.Meta:
		if b.Schema == lifecycle.Schema {
			p.lifecycle(b)
		}
	}
	return nil
}

func (p *packageCheck) checkBundle(ctx context.Context, b *declcfg.Bundle) error {
	if p.run.Has(OLMv1) {
		p.run.SetBundle(p.installability(b))
	}
	one := bundleCheck{packageCheck: p, bundle: b}
	if b.HasObjects {
		csv, err := b.CSV()
		one.manifests = csv != nil || err != nil
	}
	if err := Each(ctx, p.run, bundleChecks, one); err != nil {
		return err
	}
	if one.manifests && p.Manifests != nil && p.run.Has(OLMv1) {
		if err := p.Manifests(ctx, p.run, b); err != nil {
			return err
		}
		p.run.setManifests(b.Package, b.Name, FromCatalog)
	}
	light := *b
	light.Properties = slices.DeleteFunc(slices.Clone(b.Properties), func(q declcfg.Property) bool {
		return q.Type == typeObject || q.Type == typeMetadata
	})
	p.bundles = append(p.bundles, &light)
	return nil
}

// The types of properties that hold manifests, or what is shown of them.
const (
	typeObject   = "olm.bundle.object"
	typeMetadata = "olm.csv.metadata"
	typePackage  = "olm.package"
)

// findingAt returns a finding at a blob. path is the value in it.
func findingAt(b declcfg.Blob, path []any, message string) Finding {
	f := Finding{Package: b.BlobPackage(), File: b.Position().File, Line: b.Position().Line, Message: message,
		path: path}
	switch b.(type) {
	case *declcfg.Channel:
		f.Channel = b.BlobName()
	case *declcfg.Bundle:
		f.Bundle = b.BlobName()
	}
	return f
}
