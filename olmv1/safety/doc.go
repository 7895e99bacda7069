// Package safety says for which changes of CustomResourceDefinitions OLM v1 refuses an upgrade. It judges as
// operator-controller does before it applies a bundle (its preflight crdUpgradeSafety, v1.11.0): by the same library
// with the same configuration, and with its messages, which are sorted here.
//
// The definition in the cluster is taken to be that of the installed bundle: its storage version is the only one in
// status.storedVersions. A cluster with a longer history may have stored more versions, whose removal it refuses too.
package safety
