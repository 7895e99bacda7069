// Package check validates an operator bundle: its annotations, its dependencies and their constraints, its manifests, and
// whether the Operator Lifecycle Manager could unpack and install it. [Run] returns a [Report] with all problems.
//
//	report, err := check.Run(ctx, fsys, b, check.Options{})
//
// The rules are those of opm's "alpha bundle validate", some of which are those of github.com/operator-framework/api, and
// some that opm lacks: the size of the ConfigMap to which the bundle is unpacked, images that only an environment variable
// names, compound constraints, channels. opm stops at the first invalid part; this package reports all problems together.
//
// It is a separate package because it links Kubernetes' validators, which reading a bundle does not need.
package check
