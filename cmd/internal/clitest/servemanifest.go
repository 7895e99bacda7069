package clitest

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// ServedCatalog reads the manifest for a served catalog.
func ServedCatalog(t *testing.T) (d appsv1.Deployment, s corev1.Service) {
	t.Helper()
	parts := strings.Split(ReadFile(t, "../../../deploy/serve/catalog.yaml"), "\n---\n")
	for i, into := range []any{&d, &s} {
		if err := yaml.UnmarshalStrict([]byte(parts[i]), into); err != nil {
			t.Fatal(err)
		}
	}
	return d, s
}
