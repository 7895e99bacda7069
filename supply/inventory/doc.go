// Package inventory finds out what is in an image, for its bill of materials: the packages, bundles and related images
// of a catalog, the operator of a bundle, the Go modules of the server, and the layers that nothing describes.
package inventory
