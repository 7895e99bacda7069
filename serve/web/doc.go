// Package web serves a catalog over HTTP: the API of OLM v1's catalogd for programs, and pages on which people browse
// packages, channels, upgrade graphs, bundles and images. A [Site] is an [http.Handler]; a [Writer] makes its content:
//
//	blobs ──> Writer ──> Content (JSON lines in an unnamed file, index in memory) ──> Site ──> API, pages
//
// The API sends ranges of that file. A page reads a package or a bundle at a time, so that memory does not grow with the
// catalog. The package opens no port: package serve does.
//
// Catalogs are not trusted. Their text is never markup on a page; pages forbid browsers to load or run anything from
// elsewhere.
package web
