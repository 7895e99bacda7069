// Package diff compares two catalogs: packages, channels and their heads, upgrade edges, bundles, images, properties,
// deprecations.
//
//	report, err := diff.Compare(before.Blobs(), after.Blobs(), diff.Options{})
//	err = report.WriteText(os.Stdout, diff.TextOptions{})
//
//	old blobs ──> reduced ─┐
//	                       ├──> Report ──> JSON for scripts, text for people
//	new blobs ──> reduced ─┘
//
// It compares the meaning of catalogs, not their text: the number and format of files, and the order of blobs, entries,
// properties and keys are no differences. Only digests of a bundle's larger properties are kept, so that memory does not
// grow with the manifests. The package reads no files.
package diff
