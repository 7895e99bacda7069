// Package export writes packages of a catalog as package manifests, with the bundles fetched from their images.
//
//	catalog ──render──> graph, images, manifests ─┐
//	                    images.Client ──bundles───┴──> appregistry.Writer ──> FOLDER/PACKAGE/VERSION
//
// It does what opm's "index export" does, for catalogs of every form. Either everything is written or nothing.
package export
