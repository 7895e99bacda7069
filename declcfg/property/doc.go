// Package property has the values of the properties of bundles whose types have a meaning of their own: what an
// olm.package, olm.package.required, olm.gvk or olm.csv.metadata property is as JSON. Package declcfg names the types
// and has the properties themselves; values of other types are opaque.
//
//	p, err := bundle.PackageProperty() // a property.Package: which version of which package it is
//
//	var csv property.CSVMetadata // of an olm.csv.metadata property: what a user interface shows
//	err = json.Unmarshal(bundle.Properties[i].Value, &csv)
package property
