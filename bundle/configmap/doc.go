// Package configmap encodes the directory of a bundle as the content of the ConfigMap to which the Operator Lifecycle
// Manager unpacks bundles, and decodes it. It does not connect to a cluster.
//
//	manifests/, metadata/ ──Write──> ConfigMap ──Read──> the bundle's objects
//
// The content is byte for byte that of opm's "alpha bundle extract", which the Operator Lifecycle Manager runs in the pod of
// its unpack job.
package configmap
