package manifests

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Phase is what boxcutter applies at a time: it waits until the objects of a phase are ready before it goes on.
type Phase struct {
	Name    string
	Objects []Object
}

// phaseNames are in the order of application.
var phaseNames = []string{"namespaces", "policies", "identity", "configuration", "storage", "crds", "roles", "bindings",
	"infrastructure", "deploy", "scaling", "publish", "admission"}

// phaseOf has the phases of kinds by group; all others are deployed.
var phaseOf = map[schema.GroupKind]string{
	{Kind: "Namespace"}: "namespaces",
	{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:                             "policies",
	{Group: "policy", Kind: "PodDisruptionBudget"}:                                  "policies",
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:                             "policies",
	{Kind: "ServiceAccount"}:                                                        "identity",
	{Kind: "Secret"}:                                                                "configuration",
	{Kind: "ConfigMap"}:                                                             "configuration",
	{Kind: "PersistentVolume"}:                                                      "storage",
	{Kind: "PersistentVolumeClaim"}:                                                 "storage",
	{Group: "storage.k8s.io", Kind: "StorageClass"}:                                 "storage",
	{Group: "apiextensions.k8s.io", Kind: kindCRD}:                                  "crds",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}:                       "roles",
	{Group: "rbac.authorization.k8s.io", Kind: "Role"}:                              "roles",
	{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}:                "bindings",
	{Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}:                       "bindings",
	{Kind: "Service"}:                                                               "infrastructure",
	{Group: "cert-manager.io", Kind: "Issuer"}:                                      "infrastructure",
	{Group: "cert-manager.io", Kind: "Certificate"}:                                 "infrastructure",
	{Group: "apps", Kind: "Deployment"}:                                             "deploy",
	{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}:                    "scaling",
	{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}:                        "publish",
	{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}:                        "publish",
	{Group: "monitoring.coreos.com", Kind: "PodMonitor"}:                            "publish",
	{Group: "console.openshift.io", Kind: "ConsoleYAMLSample"}:                      "publish",
	{Group: "console.openshift.io", Kind: "ConsoleQuickStart"}:                      "publish",
	{Group: "console.openshift.io", Kind: "ConsoleCLIDownload"}:                     "publish",
	{Group: "console.openshift.io", Kind: "ConsoleLink"}:                            "publish",
	{Group: "console.openshift.io", Kind: "ConsolePlugin"}:                          "publish",
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}: "admission",
	{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}:   "admission",
}

// Phases returns the objects in the order in which boxcutter applies them: by phase, and in a phase by group, version,
// kind, namespace and name. Phases without objects are left out.
func Phases(objects []Object) []Phase {
	byName := map[string][]Object{}
	for _, o := range objects {
		name, ok := phaseOf[schema.GroupKind{Group: o.Group(), Kind: o.Kind}]
		if !ok {
			name = "deploy"
		}
		byName[name] = append(byName[name], o)
	}
	var out []Phase
	for _, name := range phaseNames {
		objs := byName[name]
		if len(objs) == 0 {
			continue
		}
		slices.SortStableFunc(objs, func(x, y Object) int {
			return cmp.Or(cmp.Compare(x.Group(), y.Group()), cmp.Compare(x.APIVersion, y.APIVersion),
				cmp.Compare(x.Kind, y.Kind), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
		})
		out = append(out, Phase{name, objs})
	}
	return out
}
