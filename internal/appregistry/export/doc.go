// Package export writes packages of a catalog as package manifests, with the bundles fetched from their images.
//
//	catalog ──render──> graph, images, manifests ─┐
//	                    images.Client ──bundles───┴──> appregistry.Writer ──> FOLDER/PACKAGE/VERSION
//
// It is what opm's "index export" does, for catalogs of every form. Everything is written or nothing is.
package export
