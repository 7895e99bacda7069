package sqlite

import (
	"fmt"
	"maps"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/internal/problem"
	"github.com/operator-bindery/bindery/internal/versions"
)

// assemble builds the blobs of one package without the manifests. It returns nil for a package that is left out with a
// finding. Deprecated bundles become entries of an olm.deprecations blob if the package is valid with them; opm omits
// them.
func (db *DB) assemble(g *graph, p *pkg) (*assembled, error) {
	if len(p.channels) == 0 || !p.declared {
		return nil, db.incomplete(g, p)
	}
	edges := g.readEdges(p, db.options.Compat)
	included, deprecated, err := db.choose(g, p)
	if err != nil {
		return nil, err
	}
	if len(deprecated) > 0 {
		all := maps.Clone(included)
		maps.Copy(all, deprecated)
		a, err := db.build(g, p, edges, all, sortedKeys(deprecated))
		if err == nil {
			return a, nil
		}
		for _, name := range sortedKeys(deprecated) {
			db.findings.add(Finding{Kind: Dropped, Package: p.name, Bundle: name,
				Reason: "the bundle is deprecated, and the package is not valid with it: " + err.Error()})
		}
	}
	return db.build(g, p, edges, included, nil)
}

// incomplete decides about a package that has no row in table package or no channels. opm refuses the whole database
// for such a package.
func (db *DB) incomplete(g *graph, p *pkg) error {
	if db.options.Compat == CompatOPM && p.declared {
		return fmt.Errorf("package %s not found", p.name)
	}
	healthy := slices.ContainsFunc(p.entries, func(e *entry) bool {
		b := g.bundles[e.bundle]
		return b != nil && !b.deprecated
	})
	if healthy {
		return fmt.Errorf("%w: its bundles are in channels that are not in the database", ErrInvalid)
	}
	if p.declared {
		db.findings.add(Finding{Kind: Dropped, Package: p.name, Reason: "the package has no channels"})
		return nil
	}
	for _, e := range p.entries {
		db.findings.add(Finding{Kind: Dropped, Package: p.name, Channel: e.channel, Bundle: e.bundle,
			Reason: "the bundle is deprecated, and its package is not in the database any more"})
	}
	if len(p.channels) > 0 {
		db.findings.add(Finding{Kind: Dropped, Package: p.name,
			Reason: "the database has channels of this package, but not the package"})
	}
	return nil
}

// choose returns the bundles of a package that are in the catalog, and the deprecated ones that can be.
func (db *DB) choose(g *graph, p *pkg) (included, deprecated map[string]bool, err error) {
	included, deprecated = map[string]bool{}, map[string]bool{}
	inChannel := map[string]bool{}
	names := map[string]bool{}
	var problems problem.List[error]
	for _, e := range p.entries {
		b := g.bundles[e.bundle]
		if b == nil {
			continue
		}
		names[e.bundle] = true
		if p.channels[e.channel] != nil {
			inChannel[e.bundle] = true
		} else if !b.deprecated {
			problems.AddNew(func() error {
				return fmt.Errorf("%w: unknown channel %s for bundle %s", ErrInvalid, fault.Quote(e.channel),
					fault.Quote(e.bundle))
			})
		}
	}
	for _, name := range sortedKeys(names) {
		b := g.bundles[name]
		dropped := func(reason string) {
			db.findings.add(Finding{Kind: Dropped, Package: p.name, Bundle: name, Reason: reason})
		}
		if db.options.Compat == CompatOPM {
			switch {
			case b.hasProperty(declcfg.PropertyDeprecated):
				dropped("opm leaves out deprecated bundles")
			case b.version.null || b.path.null && db.schema.hasColumn("operatorbundle", "bundlepath"):
				dropped("opm leaves out bundles without a version or an image")
			default:
				included[name] = true
			}
			continue
		}
		switch {
		case b.deprecated && !inChannel[name]:
			dropped("the bundle is deprecated, and none of its channels is left")
		case b.version.null:
			dropped("the bundle has no version, neither in the database nor in a ClusterServiceVersion")
		case b.path.null && b.problem == nil && len(b.manifests.objects) == 0:
			dropped("the bundle has neither an image nor manifests")
		case b.deprecated:
			deprecated[name] = true
		default:
			included[name] = true
		}
	}
	return included, deprecated, problems.Err()
}

func (db *DB) build(g *graph, p *pkg, edges map[node]*edges, names map[string]bool,
	deprecated []string) (*assembled, error) {
	a := &assembled{}
	a.catalog.Packages = []declcfg.Package{{Name: p.name, DefaultChannel: p.defaultChannel}}
	a.catalog.Channels = g.channelBlobs(p, edges, names)
	var problems problem.List[error]
	for _, name := range sortedKeys(names) {
		b := g.bundles[name]
		blob, err := db.bundleBlob(p, b)
		if err != nil {
			problems.AddNew(func() error { return fmt.Errorf("bundle %s: %w", fault.Quote(name), err) })
			continue
		}
		a.catalog.Bundles = append(a.catalog.Bundles, blob)
		a.rows = append(a.rows, b)
	}
	if len(deprecated) > 0 {
		d := declcfg.Deprecations{Package: p.name}
		for _, name := range deprecated {
			d.Entries = append(d.Entries, declcfg.DeprecationEntry{
				Reference: declcfg.Reference{Schema: declcfg.SchemaBundle, Name: name},
				Message:   deprecationMessage(name),
			})
		}
		a.catalog.Deprecations = []declcfg.Deprecations{d}
	}
	if c := p.channels[p.defaultChannel]; c != nil {
		a.iconOf = g.bundles[c.head]
		if db.options.Compat == CompatOPM && a.iconOf != nil && !a.iconOf.hasCSV {
			problems.AddNew(func() error {
				return fmt.Errorf("%w: unmarshal CSV json for bundle %s: there is none", ErrInvalid,
					fault.Quote(c.head))
			})
		}
	}
	if err := problems.Err(); err != nil {
		return nil, err
	}
	var repairs []declcfg.Repair
	if db.options.Repair {
		repairs = a.catalog.Repair()
	}
	anyImages := (db.options.AnyImages || db.options.Compat == CompatOPM) && !db.options.Repair
	if err := a.validate(anyImages); err != nil {
		return nil, err
	}
	for _, r := range repairs {
		db.findings.add(RepairFinding(r))
	}
	return a, nil
}

// deprecationMessage returns the message of a deprecation, as databases do not store one.
func deprecationMessage(bundle string) string {
	return fmt.Sprintf("%s is deprecated. Upgrade to a newer version.", bundle)
}

// validate validates the package's blobs, which lack the manifests. The only part of these that matters is the
// annotation that turns build metadata of a version into a release.
func (a *assembled) validate(anyImages bool) error {
	c := a.catalog
	c.Bundles = slices.Clone(c.Bundles)
	for i, b := range a.rows {
		c.Bundles[i].SetSubstitutesFor(b.manifests.substitutesFor())
	}
	if anyImages {
		return c.ValidateAnyImages()
	}
	return c.Validate()
}

func (db *DB) bundleBlob(p *pkg, b *bundle) (declcfg.Bundle, error) {
	if b.problem != nil {
		return declcfg.Bundle{}, b.problem
	}
	if _, err := versions.Parse(b.version.s); err != nil {
		return declcfg.Bundle{}, fmt.Errorf("%w: parse version %s: %w", ErrInvalid, fault.Quote(b.version.s), err)
	}
	properties, err := db.propertiesOf(p, b)
	if err != nil {
		return declcfg.Bundle{}, err
	}
	if b.path.null && db.schema.hasColumn("operatorbundle", "bundlepath") {
		db.findings.add(Finding{Kind: Repaired, Package: p.name, Bundle: b.name, Field: "bundlepath",
			Reason: "the bundle has no image; its manifests were kept"})
	}
	if m := b.manifests; m.csv != nil && m.csvAt < 0 && !m.csv.stub {
		db.findings.add(Finding{Kind: Dropped, Package: p.name, Bundle: b.name, Field: "csv",
			Reason: "the row has a ClusterServiceVersion that is not among the bundle's manifests, and only those " +
				"are written"})
	}
	return declcfg.Bundle{
		Name: b.name, Package: p.name, Image: b.path.s, Properties: properties,
		RelatedImages: imagesOf(b, db.options.Compat), HasObjects: len(b.manifests.objects) > 0,
	}, nil
}
