// Package bundle knows operator bundles: it reads them from a directory or from the files of an image, checks them,
// writes their metadata, and turns them into blobs of a file-based catalog or into the ConfigMap that the Operator
// Lifecycle Manager unpacks them to. It does not use the network.
package bundle
