package bundle_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// An image renders to what its directory does, in each format.
func TestBundleManifests(t *testing.T) {
	dir := clitest.ManifestsDir(t)
	clitest.Done(t, dir, "bindery", "build", "bundle", "bundle", "-t", "acme/etcd:v1", "--output", "oci:etcd.oci:v1")
	render := func(ref string, more ...string) string {
		return clitest.Done(t, dir, "bindery",
			append([]string{"bundle", "manifests", ref, "--watch-namespace", "w"}, more...)...)
	}
	for _, format := range []string{"yaml", "json", "ndjson"} {
		if a, b := render("bundle", "-o", format), render("oci:etcd.oci:v1", "-o", format); a != b || a == "" {
			t.Errorf("%s: the image gives\n%s\nthe directory\n%s", format, b, a)
		}
	}
	lines := strings.Split(strings.TrimSpace(render("bundle", "-o", "ndjson")), "\n")
	var list struct {
		Kind  string
		Items []json.RawMessage
	}
	if err := json.Unmarshal([]byte(render("bundle", "-o", "json")), &list); err != nil || list.Kind != "List" ||
		len(list.Items) != len(lines) || len(lines) != 7 {
		t.Errorf("%v, %s of %d items, %d lines", err, list.Kind, len(list.Items), len(lines))
	}
	text := render("bundle", "--phases", "--create-namespace", "--olm-labels", "my", "--install-namespace", "ns")
	for _, part := range []string{"# phase 1 of 6: namespaces\n", "kind: Namespace\n",
		"olm.operatorframework.io/owner-name: my\n", "namespace: ns\n"} {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// The configuration file is that of a ClusterExtension.
func TestBundleManifestsConfig(t *testing.T) {
	dir := clitest.ManifestsDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "config.yaml"),
		"watchNamespace: w\ndeploymentConfig: {env: [{name: A, value: b}]}\n")
	text := clitest.Done(t, dir, "bindery", "bundle", "manifests", "bundle", "--config", "config.yaml",
		"--gate", "DeploymentConfig,SingleOwnNamespaceInstallSupport")
	if !strings.Contains(text, "- name: A\n          value: b\n") {
		t.Error(text)
	}
}

// A directory is written whole, written again, and never over files of others.
func TestBundleManifestsTo(t *testing.T) {
	dir := clitest.ManifestsDir(t)
	args := []string{"bundle", "manifests", "bundle", "--watch-namespace", "w", "--to", "out", "--split"}
	for _, more := range [][]string{nil, {"--phases"}, {"-o", "json"}} {
		clitest.Done(t, dir, "bindery", append(args, more...)...)
	}
	names, err := filepath.Glob(filepath.Join(dir, "out", "*"))
	if err != nil || len(names) != 9 {
		t.Errorf("%q, %v", names, err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "out", "mine"), "")
	got := clitest.RunProgram(t, dir, "bindery", append(args, "--error-format", "json")...)
	if err := clitest.Failed(got, 7, `the directory has other files: "mine"`); err != nil {
		t.Error(err)
	}
}

// What OLM v1 refuses is an error with all reasons, the file and what helps.
func TestBundleManifestsRefused(t *testing.T) {
	dir := clitest.ManifestsDir(t)
	if err := os.RemoveAll(filepath.Join(dir, "bundle", "manifests",
		"etcdclusters.etcd.database.coreos.com.crd.yaml")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args  []string
		class int
		parts []string
	}{
		{nil, 3, []string{"does not support AllNamespaces install mode\n",
			"'etcdclusters.etcd.database.coreos.com' not found in bundle", "clusterserviceversion.yaml: ",
			"--watch-namespace NAMESPACE"}},
		{[]string{"--gate", "Deploymentconfig"}, 2, []string{"did you mean"}},
		{[]string{"--gate", "BoxcutterRuntime"}, 2, []string{"has no effect on what is rendered"}},
		{[]string{"--split"}, 2, []string{"--split requires --to"}},
		{[]string{"--config", ""}, 2, []string{"invalid --config value"}},
		{[]string{"--install-namespace", "A"}, 2, []string{"invalid --install-namespace value"}},
		{[]string{"--to", "bundle/out"}, 2, []string{"inside it"}},
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"bundle", "manifests", "bundle", "--error-format", "json"},
			c.args...)...)
		if err := clitest.Failed(got, c.class, c.parts...); err != nil {
			t.Errorf("%v: %v", c.args, err)
		}
	}
}
