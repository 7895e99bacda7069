package manifests_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/internal/fault"
	"github.com/operator-bindery/bindery/olmv1/manifests"
)

// Each deployment has the annotations of the ClusterServiceVersion: what a small bundle renders to has a limit.
func TestRenderedSizeIsLimited(t *testing.T) {
	var text strings.Builder
	fmt.Fprintf(&text, "kind: ClusterServiceVersion\nmetadata: {name: a.v1, annotations: {big: %s}}\nspec:\n"+
		"  installModes: [{type: AllNamespaces, supported: true}]\n  install: {spec: {deployments: [",
		strings.Repeat("x", 1<<20))
	for i := range 40 {
		fmt.Fprintf(&text, "{name: d%d, spec: {template: {spec: {containers: []}}}},", i)
	}
	text.WriteString("]}}\n")
	b, err := manifests.Read(bundleOf(map[string]string{"manifests/csv.yaml": text.String()}))
	if err != nil {
		t.Fatal(err)
	}
	s := manifests.Settings{InstallNamespace: "ns", Certs: manifests.CertManager}
	if _, err := b.Manifests(s); !errors.Is(err, fault.ErrLimit) {
		t.Errorf("got %v", err)
	}
	if p := b.Problems(s); len(p) != 1 || p[0].ID != manifests.IDRender {
		t.Errorf("got %v", p)
	}
}
