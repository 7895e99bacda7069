// Package submission checks what authors of operators send to a repository of operators, as the static checks of
// OpenShift's operator pipelines do: bundles, operators with their ci.yaml, catalogs of a package, and a change of
// them as a whole.
//
// [Find] recognizes the parts of such a repository, from inside of it, too, and [Repository.Check] runs the rules on them. The
// identifiers of the rules are those of the pipelines.
package submission
