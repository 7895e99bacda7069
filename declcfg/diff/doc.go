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
// The meaning of catalogs is compared, not their form: the number and format of files and the order of blobs, entries,
// properties and keys are no differences. Only digests of large properties are held in memory, so that it does not grow
// with the manifests. The package reads no files and prints nothing.
package diff
