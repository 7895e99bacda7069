// Package web serves a catalog over HTTP: the API of OLM v1's catalogd for programs, GraphQL included, and pages on
// which people browse packages, channels, upgrade graphs, bundles and images.
//
//	blobs ──> Writer ──> Content (lines in an unnamed file, index in memory) ──> Site ──> API, pages
//
// The API sends bytes of that file. A page reads what it shows from the file, a package or bundle at a time, so that
// the server needs the memory of one package and not of the whole catalog. The package opens no ports: see package
// serve.
//
// [WriteStatic] writes the pages as files. Each address on a page is made by the page (page.to), as a path with a query for
// a server and as the name of a file for a static site; what the first page leads to is written.
//
// Catalogs are untrusted. Their content is always text on a page, never markup; pages forbid browsers to load or run
// anything from elsewhere.
package web
