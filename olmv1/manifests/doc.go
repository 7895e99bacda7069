// Package manifests renders a registry+v1 bundle to the plain manifests that OLM v1 applies, and says why a bundle
// cannot be installed.
//
//	Read, FromObjects        a bundle's files, or the objects that a catalog has of it -> *Bundle
//	Bundle.Manifests         what a ClusterExtension with these Settings installs: refusals, configuration, rendering
//	Bundle.Render            the renderer alone, with target namespaces of the caller
//	Bundle.Problems          every reason why it cannot be installed
//	Phases                   the objects in the order in which boxcutter applies them
//
// The rules are those of operator-controller's renderer of bundles
// (https://github.com/operator-framework/operator-controller, internal/operator-controller/rukpak). Objects are typed
// as Kubernetes types them, so unknown fields of the ClusterServiceVersion and of CustomResourceDefinitions are
// dropped, and empty fields that the types always have are printed. What operator-controller orders by chance is
// sorted: service accounts and certificates by name, problems of a configuration by field.
//
// No scheme and no schema is built before it is used, so that linking the package costs other commands nothing.
package manifests
