// Package imageset reads what is to be mirrored: ImageSetConfiguration and DeleteImageSetConfiguration of the API
// mirror.openshift.io/v2alpha1, the references in them, and the names that images get at a destination.
//
// The forms and the names are those of oc-mirror v2, so that its files, registries and archives stay usable. What is
// checked is stricter: all problems of a file are reported together, with line, column and advice.
//
// The package reads files and nothing else: no registry, no catalog. Everything in it is safe for concurrent use as
// long as a [Set] is not changed.
package imageset
