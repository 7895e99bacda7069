// Package property has the values of the properties of bundles whose types have a meaning of their own: what an
// olm.package, olm.package.required, olm.gvk or olm.csv.metadata property is as JSON. Package declcfg names the types and
// has the properties themselves; values of other types are opaque.
//
//	b := catalog.Bundles[0]
//	p, err := b.PackageProperty() // property.Package: which version of which package it is
//	csv, err := b.CSV()           // *property.CSVMetadata: what a user interface shows
package property
