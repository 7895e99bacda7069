// Package configmap converts the directory of a bundle to the content of the ConfigMap that the Operator Lifecycle
// Manager unpacks bundles to, and back. It implements the encoding and does not access a cluster.
//
//	manifests/, metadata/ ──Write──> ConfigMap ──Read──> the bundle's objects
//
// The content has the same bytes as that of opm's "alpha bundle extract", which the Operator Lifecycle Manager runs in
// the pod of its unpack job and whose result it reads.
package configmap
