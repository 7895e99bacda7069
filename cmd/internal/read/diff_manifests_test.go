package read_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/olmv1/upgrade"
)

// An upgrade's permissions, definitions and objects; bundles and what was rendered of them give the same answer.
func TestDiffManifests(t *testing.T) {
	dir := clitest.ManifestsDir(t)
	if err := os.CopyFS(filepath.Join(dir, "new"), os.DirFS(filepath.Join(dir, "bundle"))); err != nil {
		t.Fatal(err)
	}
	csv := filepath.Join(dir, "new", "manifests", "etcdoperator.v0.9.4.clusterserviceversion.yaml")
	text, err := os.ReadFile(csv)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(text), "          - secrets\n", "          - secrets\n          - nodes\n", 1)
	if changed == string(text) {
		t.Fatal("the bundle has other permissions")
	}
	clitest.WriteFile(t, csv, changed)
	diff := func(args ...string) clitest.Result {
		return clitest.RunProgram(t, dir, "bindery", append([]string{"diff", "--manifests"}, args...)...)
	}
	watch := []string{"--watch-namespace", "w"}
	for from, to := range map[string]string{"bundle": "old.yaml", "new": "rendered/all.yaml"} {
		clitest.WriteFile(t, filepath.Join(dir, to),
			clitest.Done(t, dir, "bindery", append([]string{"bundle", "manifests", from}, watch...)...))
	}
	for _, args := range [][]string{{"bundle", "new"}, {"old.yaml", "rendered"}, {"old.yaml", "new"}} {
		got := diff(append(args, watch...)...)
		const want = "permissions\n  ServiceAccount etcd-system/etcd-operator, in namespace w\n    + nodes: get\n"
		if got.Status != 1 || !strings.HasPrefix(got.Stdout, want) ||
			!strings.HasSuffix(got.Stdout, "2 roles and bindings have other names, for the same accounts\n") {
			t.Errorf("%v: %+v", args, got)
		}
	}
	if got := diff("bundle", "bundle", "--watch-namespace", "w"); got.Status != 0 || got.Stdout != "no differences\n" {
		t.Errorf("%+v", got)
	}
	var report upgrade.Report
	got := diff("bundle", "new", "--watch-namespace", "w", "-o", "json")
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil || len(report.Permissions) != 1 ||
		len(report.Renamed) != 2 || report.Same {
		t.Errorf("%v: %+v", err, report)
	}
}
