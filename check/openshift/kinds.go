package openshift

import (
	"slices"
	"strings"
)

// byKind are the kinds that OLM v0 creates in the version v1 of their API, whatever the apiVersion in a manifest is.
var byKind = []string{"ClusterRole", "ClusterRoleBinding", "ConfigMap", "Role", "RoleBinding", "Secret", "Service",
	"ServiceAccount"}

// olmKinds are the kinds of objects beside ClusterServiceVersions that OLM v0 installs from a bundle, with the first
// releases of OpenShift that do: the first minor version of 4.x, and patch releases of those before it. It is what the
// release branches of OpenShift's OLM have, and what release notes say of the patches.
var olmKinds = func() map[string]kindSince {
	kinds := map[string]kindSince{
		"NetworkPolicy": {20, []string{"4.12.81", "4.13.61", "4.14.57", "4.15.58", "4.16.48", "4.17.39", "4.18.23", "4.19.10"}},
		"ConsolePlugin": {20, nil},
	}
	for _, kind := range append(byKind, "ConsoleCLIDownload", "ConsoleLink", "ConsoleQuickStart", "ConsoleYAMLSample",
		"CustomResourceDefinition", "PodDisruptionBudget", "PriorityClass", "PrometheusRule", "ServiceMonitor",
		"VerticalPodAutoscaler") {
		kinds[kind] = kindSince{}
	}
	return kinds
}()

// kindSince says since when OLM v0 installs a kind.
type kindSince struct {
	minor   int // of 4.x
	patches []string
}

// installs reports whether the OLM of a version installs a kind, and if not all of its releases do, the first ones.
func installs(kind string, v Version) (ok bool, patches string) {
	since, known := olmKinds[kind]
	if !known || v.Compare(Version{4, since.minor}) >= 0 {
		return known, ""
	}
	ok = slices.ContainsFunc(since.patches, func(p string) bool { return strings.HasPrefix(p, v.String()+".") })
	return ok, strings.Join(since.patches, ", ")
}
