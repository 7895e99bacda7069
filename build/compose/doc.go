// Package compose makes one catalog of the images of others, as a configuration file says: the composite catalogs of the
// documentation of file-based catalogs. Images that were built by this module are stacked, see [build.Compose]; others are
// read.
package compose
