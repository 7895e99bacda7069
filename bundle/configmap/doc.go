// Package configmap turns the directory of a bundle into the content of the ConfigMap that the Operator Lifecycle Manager
// unpacks bundles to, and back. It knows the encoding and no cluster.
//
//	manifests/, metadata/ ──Write──> ConfigMap ──Read──> the bundle's objects
//
// The content is byte for byte that of opm's "alpha bundle extract", which the Operator Lifecycle Manager runs in the pod of
// its unpack job and whose result it reads.
package configmap
