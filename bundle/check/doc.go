// Package check validates an operator bundle: its annotations, its dependencies and the constraints in
// them, its manifests, and whether the Operator Lifecycle Manager could unpack and install it.
//
// The rules are those of opm's "alpha bundle validate", which are in part those of github.com/operator-framework/api,
// and some that opm lacks: the size of the ConfigMap that the bundle is unpacked to, images that only an environment
// variable names, compound constraints, channels. Unlike opm it does not stop at the first part that is wrong: all
// problems are reported together.
//
// It is a package of its own so that who only reads bundles need not carry Kubernetes' machinery.
package check
