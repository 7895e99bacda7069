// Package web offers a catalog over HTTP: the API of OLM v1's catalogd for programs, and pages on which people browse
// packages, channels, upgrade graphs, bundles and images.
//
//	blobs ──> Writer ──> Content (JSON lines in a file without a name, index in memory) ──> Site ──> API, pages
//
// The API sends bytes of that file. A page reads what it shows out of it, a package or a bundle at a time, so that the
// memory of a server is that of a package and not that of its catalog. Nothing here opens a port: see package serve.
//
// Catalogs are not trusted. Whatever they say is text on a page, never markup; pages forbid browsers to load or to run
// anything from elsewhere.
package web
