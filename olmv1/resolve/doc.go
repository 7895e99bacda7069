// Package resolve answers which bundle of a package the Operator Lifecycle Manager installs, and to which one it
// upgrades.
//
// [Resolver.Resolve] follows OLM v1: the blobs of a package in each catalog, the filters of a ClusterExtension, the
// order of the candidates, the choice between catalogs, the validation of the chosen bundle, and the messages of its
// conditions (operator-controller v1.11.0). A [Resolver] keeps what it read of a package for more than one
// request. [V0] follows OLM v0: the order of a channel, and the steps from an installed version to the head.
//
// Catalogs need not be valid: the resolver of OLM v1 validates none. What this package keeps of a catalog is names,
// versions and channels, never manifests. It does no I/O of its own; a [Resolver] and a [V0] do not change after they
// were made and are safe for concurrent use.
package resolve
