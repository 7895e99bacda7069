// Package compose builds one catalog from the images of others, as described by a configuration file for composite
// catalogs. Layers of images built by this module are stacked, see [build.Compose]; other images are read.
package compose
