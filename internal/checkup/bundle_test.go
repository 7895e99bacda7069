package checkup_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/declcfg/rules"
	"github.com/operator-bindery/bindery/internal/checkup"
)

// A directory of manifests without annotations is a bundle that OLM v1 cannot read, and no catalog.
func TestBundleWithoutAnnotations(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: a.v1}\n"
	if err := os.WriteFile(filepath.Join(dir, "manifests", "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	o := checkup.Options{Options: rules.Options{Profiles: []rules.Profile{rules.OLMv1}}}
	report, err := checkup.Check(t.Context(), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	if report.Passed || len(report.Findings) != 1 || report.Findings[0].Rule != "olmv1.unreadable" ||
		report.Findings[0].File != "metadata/annotations.yaml" {
		t.Errorf("%+v", report.Findings)
	}
}
