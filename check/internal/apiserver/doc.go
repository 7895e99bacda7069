// Package apiserver knows for what a Kubernetes API server refuses an object that OLM v1 applies, as far as the object
// alone shows it: which versions of an API it serves, and the validation of the kinds that real bundles get wrong.
//
// The words are those of the API server. What admission plugins, quotas, other objects and fields that are not among
// these rules decide is not known here: an object without a finding may be refused, one with a finding is. The values
// that the API server fills in before it validates are taken into account.
package apiserver
