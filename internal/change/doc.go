// Package change carries edits to where catalogs are, and back: it reads a catalog, gives it to a function of package edit,
// and puts the result in its place.
//
//	database, directory, fs.FS ──> State ──> Edit.Apply ──> catalog, account
//	            │                                              │
//	            └──── packages that did not change ────> blobs ┴──> the same place (InPlace), or elsewhere (Source)
//
// Edits see the skeleton of a catalog: its packages, channels and bundles without the manifests, which are most of it. Those
// are put back while the result is written, one bundle at a time. A package that did not change is passed through.
//
// In place an edit is done as a whole or not at all, whatever happens to the process, and edits of one catalog wait for one
// another.
package change
