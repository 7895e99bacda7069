package checkup_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/operator-bindery/bindery/check/checkup"
	"github.com/operator-bindery/bindery/check/rules"
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

// Each bundle whose manifests a catalog has is progress.
func TestProgressOfManifests(t *testing.T) {
	dir, text := t.TempDir(), `{"schema":"olm.package","name":"a"}`
	csv := base64.StdEncoding.EncodeToString([]byte(`{"apiVersion":"operators.coreos.com/v1alpha1",` +
		`"kind":"ClusterServiceVersion","metadata":{"name":"a.v1"}}`))
	for i := range 3 {
		text += fmt.Sprintf(`{"schema":"olm.bundle","name":"a.v%d","package":"a","image":"example.com/a:%d","properties":[`+
			`{"type":"olm.bundle.object","value":{"data":%q}}]}`, i, i, csv)
	}
	if err := os.WriteFile(filepath.Join(dir, "catalog.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var states [][2]int
	o := checkup.Options{Options: rules.Options{Profiles: []rules.Profile{rules.OLMv1}},
		Progress: func(done, all int) { states = append(states, [2]int{done, all}) }}
	if _, err := checkup.Check(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	if want := [][2]int{{1, 0}, {2, 0}, {3, 0}}; !slices.Equal(states, want) {
		t.Errorf("%v, want %v", states, want)
	}
}
