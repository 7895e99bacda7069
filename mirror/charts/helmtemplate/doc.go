// Package helmtemplate renders charts of Helm as "helm template" does: the manifests that a chart makes of its values.
//
//	Load         a chart, from a directory or an archive
//	Chart.Render its manifests, hooks and CRDs
//
// What a chart, a values file and a template mean is what helm.sh/helm/v3 makes of them, byte by byte: the tests render
// with both. The library itself is not linked, as it brings a client of clusters; of it there are the types of a chart and
// the rules of .helmignore. Nothing here asks a network or a cluster, or reads the environment.
//
// Charts are untrusted: sizes, counts, depths, and time are limited, see [Limits] and guard.go.
package helmtemplate
