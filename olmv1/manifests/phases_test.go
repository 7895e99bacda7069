package manifests_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// Objects are sorted by phase, and in a phase by group, version, kind, namespace and name. What is not known deploys.
func TestPhases(t *testing.T) {
	var objects []manifests.Object
	for _, line := range strings.Split(`admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration ns v
acme.io/v1 Thing - t
apps/v1 Deployment ns d
cert-manager.io/v1 Issuer ns i
v1 Service ns s
v1 Service a s
v1 ConfigMap ns c
v1 Secret ns c
rbac.authorization.k8s.io/v1 ClusterRoleBinding - b
rbac.authorization.k8s.io/v1 Role ns r
rbac.authorization.k8s.io/v1 ClusterRole - r
apiextensions.k8s.io/v1 CustomResourceDefinition - x
policy/v1 PodDisruptionBudget ns p
monitoring.coreos.com/v1 ServiceMonitor ns m
autoscaling.k8s.io/v1 VerticalPodAutoscaler ns v
v1 ServiceAccount ns a
v1 Namespace - ns
monitoring.coreos.com/v2 Namespace - other`, "\n") {
		f := strings.Fields(line)
		objects = append(objects, manifests.Object{APIVersion: f[0], Kind: f[1], Namespace: strings.Trim(f[2], "-"),
			Name: f[3]})
	}
	var got []string
	for _, p := range manifests.Phases(objects) {
		got = append(got, fmt.Sprint(p.Name, " ", p.Objects))
	}
	// The fields of an object are printed by its String.
	const want = `namespaces [Namespace ns]
policies [PodDisruptionBudget ns/p]
identity [ServiceAccount ns/a]
configuration [ConfigMap ns/c Secret ns/c]
crds [CustomResourceDefinition x]
roles [ClusterRole r Role ns/r]
bindings [ClusterRoleBinding b]
infrastructure [Service a/s Service ns/s Issuer ns/i]
deploy [Thing t Deployment ns/d Namespace other]
scaling [VerticalPodAutoscaler ns/v]
publish [ServiceMonitor ns/m]
admission [ValidatingWebhookConfiguration ns/v]`
	if text := strings.Join(got, "\n"); text != want {
		t.Error(text)
	}
}
