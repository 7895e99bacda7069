// Package bundle reads operator bundles from a directory or from the files of an image, and converts them to blobs of a
// file-based catalog. Validation beyond readability, generating metadata, and the ConfigMap that the Operator Lifecycle
// Manager unpacks bundles to are in packages below this directory. It does not use the network.
//
// [Read] reads a bundle, and [Bundle.Blob] returns its blob.
package bundle
