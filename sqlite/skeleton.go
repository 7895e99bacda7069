package sqlite

import (
	"context"
	"errors"
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/declcfg/property"
)

// Reduced loads the database and returns its catalog with each bundle reduced (see [declcfg.Bundle.Reduce]): packages
// have their icons, and bundles a property for each manifest. Only one manifest is in memory at a time. The catalog is
// in writing order. The caller may modify it as far as edits modify catalogs in place.
func (db *DB) Reduced(ctx context.Context) (_ *declcfg.Catalog, err error) {
	packages, err := db.loaded(ctx)
	if err != nil {
		return nil, db.wrap(err)
	}
	conn, err := db.conn(ctx)
	if err != nil {
		return nil, db.wrap(err)
	}
	defer func() { err = db.wrap(errors.Join(classify(ctx, err), conn.Close())) }()
	c := &declcfg.Catalog{}
	for _, a := range packages {
		pkg := a.catalog.Packages[0]
		if pkg.Icon, err = db.icon(ctx, conn, a); err != nil {
			return nil, err
		}
		c.Packages = append(c.Packages, pkg)
		c.Channels = append(c.Channels, a.catalog.Channels...)
		for i := range a.catalog.Bundles {
			b, err := a.reduced(i)
			if err != nil {
				return nil, err
			}
			c.Bundles = append(c.Bundles, b)
		}
		c.Deprecations = append(c.Deprecations, a.catalog.Deprecations...)
	}
	return c, db.source.unchanged()
}

// Stranded is a bundle of a database that is in no channel and therefore not in the catalog.
type Stranded struct {
	// Package is that of the bundle's olm.package property; empty if it has none.
	Package, Name, Image string
}

// Stranded loads the database and returns the bundles that are in no channel, sorted by name.
func (db *DB) Stranded(ctx context.Context) ([]Stranded, error) {
	if _, err := db.loaded(ctx); err != nil {
		return nil, db.wrap(err)
	}
	var out []Stranded
	for _, b := range db.load.stranded {
		s := Stranded{Name: b.name, Image: b.path.s}
		for _, p := range b.properties {
			var v property.Package
			if p.typ == declcfg.PropertyPackage && decode(p, &v) == nil {
				s.Package = v.PackageName
			}
		}
		out = append(out, s)
	}
	return out, nil
}

// reduced returns a bundle with the values of its manifests dropped.
func (a *assembled) reduced(i int) (declcfg.Bundle, error) {
	b, m := a.catalog.Bundles[i], a.rows[i].manifests
	properties := make([]declcfg.Property, 0, len(b.Properties)+len(m.objects))
	var metadata []declcfg.Property
	for _, p := range b.Properties {
		if p.Type == declcfg.PropertyCSVMetadata {
			metadata = append(metadata, p)
		} else {
			properties = append(properties, p)
		}
	}
	for range m.objects {
		properties = append(properties, declcfg.Property{Type: declcfg.PropertyBundleObject})
	}
	b.Properties = append(properties, metadata...)
	b.SetSubstitutesFor(m.substitutesFor())
	b.Reduce() // keeps that if the version depends on it
	b.RelatedImages = slices.Clone(b.RelatedImages)
	return b, nil
}
