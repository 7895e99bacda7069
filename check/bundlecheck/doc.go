// Package bundlecheck validates an operator bundle: its annotations, dependencies and constraints, its manifests, and
// whether the Operator Lifecycle Manager can unpack and install it.
//
//	b, err := bundle.Read(ctx, fsys, bundle.ReadOptions{})
//	report, err := bundlecheck.Run(ctx, fsys, b, bundlecheck.Options{})
//
// The rules are those of opm's "alpha bundle validate", some of which are in github.com/operator-framework/api, and
// some more: the size of the ConfigMap that the bundle is unpacked to, images that only an environment variable names,
// compound constraints, channels. Unlike opm it does not stop at the first invalid part: all problems are reported
// together.
//
// It is a separate package so that programs which only read bundles do not link Kubernetes' validators.
package bundlecheck
