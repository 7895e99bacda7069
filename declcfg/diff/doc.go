// Package diff compares two catalogs: packages, channels and their heads, upgrade edges, bundles, images,
// properties, deprecations.
//
//	old blobs ──> reduced ─┐
//	                       ├──> Report ──> JSON for scripts, text for people
//	new blobs ──> reduced ─┘
//
// What a catalog means is compared, not how it is written down: the number and format of its files, the order of blobs, of
// entries, of properties and of keys are no differences. Of every bundle only digests of its larger properties are kept, so
// that memory does not grow with the manifests. The package reads no files and prints nothing.
package diff
