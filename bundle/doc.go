// Package bundle reads operator bundles, from a directory or from the files of an image, and makes blobs of a file-based
// catalog of them.
//
//	b, err := bundle.Read(ctx, os.DirFS("bundle"), bundle.ReadOptions{})
//	blob, err := b.Blob("quay.io/example/etcd:v0.9.4")
//
// Validation is in package check, metadata in package generate, and the ConfigMap to which the Operator Lifecycle Manager
// unpacks a bundle in package configmap, all below this one. The package does not use the network.
package bundle
