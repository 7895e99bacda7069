// Package change applies edits to catalogs wherever they are: it reads a catalog, passes it to a function of package
// edit, and writes the result.
//
//	database, directory, fs.FS ──> State ──> Edit.Apply ──> catalog, account
//	            │                                              │
//	            └──── unchanged packages ──────────────> blobs ┴──> the same place (InPlace), or elsewhere (Source)
//
// Edits receive the skeleton of a catalog: its packages, channels and bundles without the manifests, which are most of
// the bytes. The manifests are added back while the result is written, one bundle at a time. Unchanged packages are
// copied.
//
// An edit in place is applied completely or not at all, even if the process is killed, and edits of one catalog wait
// for one another.
package change
