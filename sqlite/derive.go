package sqlite

import (
	"slices"

	"github.com/operator-bindery/bindery/declcfg"
)

// derive computes what the database's schema version did not store from what it does store. It does not follow opm's
// own migrations: those to versions 5 and 9 damage data.
func (db *DB) derive(g *graph) {
	s := db.schema
	missing := func(field, how string) { db.findings.add(Finding{Kind: Derived, Field: field, Reason: how}) }
	if !s.has("related_image") {
		missing("related_image", "the table is missing; the images are those that the ClusterServiceVersions name")
	}
	if !s.has("api_requirer") {
		missing("api_requirer", "the table is not there; the required APIs are those of the ClusterServiceVersions")
	}
	if !s.hasColumn("operatorbundle", "bundlepath") {
		missing("bundlepath", "the column is missing; bundles have manifests, but no image")
	}
	if !s.hasColumn("operatorbundle", "version") {
		missing("version", "the column is missing; the versions are those of the ClusterServiceVersions")
	}
	if !s.hasColumn("operatorbundle", "skiprange") {
		missing("skiprange", "the column is missing; the ranges are those of the ClusterServiceVersions")
	}
	if !s.has("dependencies") {
		missing("dependencies", "the table is missing; the dependencies are the required APIs")
	}
	if !s.has("properties") {
		missing("properties",
			"the table is missing; the properties are the version, the provided APIs and the olm.properties "+
				"annotations")
	}
	for _, b := range g.bundles {
		b.deprecated = b.deprecated || b.hasProperty(declcfg.PropertyDeprecated)
		if b.manifests == nil || b.manifests.csv == nil {
			continue
		}
		c := b.manifests.csv
		if !s.has("related_image") {
			b.images = append(b.images, c.operatorImages...)
			if b.path.s != "" {
				b.images = append(b.images, b.path.s)
			}
		}
		if !s.has("api_requirer") {
			b.required = c.required
		}
		if !s.has("api_provider") {
			b.provided = c.owned
		}
		if !s.hasColumn("operatorbundle", "skiprange") {
			b.skipRange = text{s: c.skipRange}
		}
		if !s.has("properties") && db.options.Compat == CompatNone {
			b.properties = append(b.properties, c.properties...)
		}
		db.repairVersion(b, c)
	}
}

// repairVersion takes the version and the skipRange from the ClusterServiceVersion if the version column is empty,
// since opm's migration to version 5 wrote the values to new rows instead of updating. With [CompatOPM] a column that
// exists stays empty, as in opm.
func (db *DB) repairVersion(b *bundle, c *csv) {
	if b.version.s != "" || c.version == "" || db.options.Compat == CompatOPM && db.schema.hasColumn("operatorbundle",
		"version") {
		return
	}
	b.version = text{s: c.version}
	if b.skipRange.null {
		b.skipRange = text{s: c.skipRange}
	}
	if db.schema.hasColumn("operatorbundle", "version") {
		db.findings.add(Finding{Kind: Repaired, Bundle: b.name, Field: "version",
			Reason: "the row has no version; that of the ClusterServiceVersion was taken"})
	}
}

func (b *bundle) hasProperty(typ string) bool {
	return slices.ContainsFunc(b.properties, func(p propertyRow) bool { return p.typ == typ })
}
