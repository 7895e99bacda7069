// Package bundle reads operator bundles, from a directory or from the files of an image, and turns them into blobs of a
// file-based catalog. What is wrong with a bundle beyond that it cannot be read, its metadata, and the ConfigMap that the
// Operator Lifecycle Manager unpacks it to are the business of the packages below it. It does not use the network.
package bundle
