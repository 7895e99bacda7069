// Package resources makes the objects with which a cluster uses a mirror: sets of mirrors for images by digest and by
// tag, a CatalogSource and a ClusterCatalog for each catalog, and lists of the images for other programs.
//
// Names, files and text are those of oc-mirror v2, so that what was applied to a cluster is replaced by what is applied
// later. Order is fixed, names are valid and different, and files are replaced only when all new ones are complete.
//
// The package uses no network. Its functions may be called concurrently, except [Write] for one directory.
package resources
