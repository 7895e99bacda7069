package bundle_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
)

// clusterDir returns a directory with the bundles that were installed on a cluster.
func clusterDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range recorded.Archive(t, "../../../testdata/olmv1/cluster/bundles.tar.zst") {
		clitest.WriteFile(t, filepath.Join(dir, filepath.FromSlash(name)), string(text))
	}
	return dir
}

// marked is what the runtimes of operator-controller change in an object.
type marked struct {
	APIVersion, Kind string
	Metadata         map[string]any
	Status           json.RawMessage
}

func (o marked) name() [3]string {
	namespace, _ := o.Metadata["namespace"].(string)
	name, _ := o.Metadata["name"].(string)
	return [3]string{o.Kind, namespace, name}
}

// rendered returns the objects that "bundle manifests" writes.
func rendered(t *testing.T, dir string, args ...string) []marked {
	t.Helper()
	text := clitest.Done(t, dir, "bindery", append([]string{"bundle", "manifests", "-o", "ndjson"}, args...)...)
	var out []marked
	for line := range strings.Lines(text) {
		var o marked
		if err := json.Unmarshal([]byte(line), &o); err != nil {
			t.Fatal(err)
		}
		out = append(out, o)
	}
	return out
}

// The objects of a ClusterObjectSet, in the order of its phases.
func TestBundleManifestsPhasesRecorded(t *testing.T) {
	dir := clusterDir(t)
	for extension, args := range map[string][2]string{"bwidget": {"widget-1.2.0", "bw-ns"},
		"bgadget": {"gadget-0.2.0", "bg-ns"}} {
		var set struct {
			Phases []struct{ Objects [][3]string }
		}
		clitest.ClusterFile(t, "phases-"+extension+".json", &set)
		var want, got [][3]string
		for _, p := range set.Phases {
			want = append(want, p.Objects...)
		}
		for _, o := range rendered(t, dir, args[0], "--install-namespace", args[1], "--phases", "--runtime", "boxcutter",
			"--olm-labels", extension) {
			got = append(got, o.name())
		}
		if !slices.Equal(got, want) {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}

// What each runtime writes on an object, and what Boxcutter removes.
func TestBundleManifestsRuntime(t *testing.T) {
	dir := clusterDir(t)
	for _, bundle := range []string{"widget-1.2.0", "gadget-0.2.0", "rbeta-1.0.0"} {
		pkg, version, _ := strings.Cut(bundle, "-")
		helm := rendered(t, dir, bundle, "--install-namespace", "ns", "--olm-labels", "my")
		if again := rendered(t, dir, bundle, "--install-namespace", "ns", "--olm-labels", "my", "--runtime", "helm"); len(
			again) != len(helm) {
			t.Errorf("%s: by default %d objects, with Helm %d", bundle, len(helm), len(again))
		}
		boxcutter := rendered(t, dir, bundle, "--install-namespace", "ns", "--olm-labels", "my", "--runtime", "boxcutter")
		plain := rendered(t, dir, bundle, "--install-namespace", "ns", "--runtime", "boxcutter")
		statuses := 0
		for i, o := range boxcutter {
			labels := o.Metadata["labels"].(map[string]any)
			annotations := o.Metadata["annotations"].(map[string]any)
			if o.Status != nil || plain[i].Status != nil || labels["olm.operatorframework.io/owner-name"] != "my" ||
				labels["olm.operatorframework.io/owner-kind"] != "ClusterExtension" ||
				annotations["olm.operatorframework.io/package-name"] != pkg ||
				annotations["olm.operatorframework.io/bundle-version"] != version {
				t.Errorf("%s: %+v", bundle, o)
			}
			if o.Kind == "CustomResourceDefinition" && (o.APIVersion != "apiextensions.k8s.io/v1" ||
				bundle == "rbeta-1.0.0" && helm[i].APIVersion != "apiextensions.k8s.io/v1beta1") {
				t.Errorf("%s: %s, with Helm %s", bundle, o.APIVersion, helm[i].APIVersion)
			}
			if helm[i].Status != nil {
				statuses++
			}
			of, _ := helm[i].Metadata["annotations"].(map[string]any)
			labels = helm[i].Metadata["labels"].(map[string]any)
			if labels["olm.operatorframework.io/owner-name"] != "my" || of["olm.operatorframework.io/package-name"] != nil {
				t.Errorf("%s: with Helm %+v", bundle, helm[i])
			}
			labels, _ = plain[i].Metadata["labels"].(map[string]any)
			of, _ = plain[i].Metadata["annotations"].(map[string]any)
			if labels["olm.operatorframework.io/owner-name"] != nil || of["olm.operatorframework.io/package-name"] != nil {
				t.Errorf("%s: without --olm-labels %+v", bundle, plain[i])
			}
		}
		if statuses == 0 {
			t.Errorf("%s: no object has a status with Helm", bundle)
		}
	}
}

// A file of the bundle keeps labels and annotations with Boxcutter, and nothing else of its metadata.
func TestBundleManifestsSanitized(t *testing.T) {
	dir := clusterDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "widget-1.2.0", "manifests", "configmap-widget-config.yaml"), `apiVersion: v1
kind: ConfigMap
metadata: {name: widget-config, generateName: x, creationTimestamp: 2024-01-01T00:00:00Z, finalizers: [a.example.com/b],
  labels: {a: b}, annotations: {kubectl.kubernetes.io/last-applied-configuration: "{}"}}
status: {a: 1}
`)
	for flag, want := range map[string]string{
		"--create-namespace": `{"labels":{"a":"b"},"name":"widget-config","namespace":"ns"}`,
		"--olm-labels=my": `{"annotations":{"olm.operatorframework.io/bundle-version":"1.2.0",` +
			`"olm.operatorframework.io/package-name":"widget"},"labels":{"a":"b",` +
			`"olm.operatorframework.io/owner-kind":"ClusterExtension","olm.operatorframework.io/owner-name":"my"},` +
			`"name":"widget-config","namespace":"ns"}`,
	} {
		for _, o := range rendered(t, dir, "widget-1.2.0", "--install-namespace", "ns", "--runtime", "boxcutter", flag) {
			if got, _ := json.Marshal(o.Metadata); o.Kind == "ConfigMap" && (string(got) != want || o.Status != nil) {
				t.Errorf("%s: %s, status %s", flag, got, o.Status)
			}
		}
	}
}

// What a runtime writes is no difference between versions; without labels the runtime must be named.
func TestDiffManifestsRuntime(t *testing.T) {
	dir := clusterDir(t)
	write := func(name string, args ...string) {
		clitest.WriteFile(t, filepath.Join(dir, name), clitest.Done(t, dir, "bindery", append([]string{"bundle", "manifests",
			"widget-1.2.0", "--install-namespace", "ns", "--runtime", "boxcutter"}, args...)...))
	}
	write("marked.yaml", "--olm-labels", "my", "--create-namespace")
	write("plain.yaml")
	for _, c := range []struct {
		args   string
		status int
	}{
		{"marked.yaml widget-1.2.0", 0}, {"widget-1.2.0 marked.yaml", 0}, {"plain.yaml widget-1.2.0 --runtime boxcutter", 0},
		{"widget-1.2.0 widget-1.2.0 --runtime boxcutter", 0}, {"plain.yaml widget-1.2.0", 1},
		{"plain.yaml widget-1.2.0 --runtime other", 1}, {"plain.yaml plain.yaml --runtime boxcutter", 0},
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"diff", "--manifests", "--install-namespace", "ns"},
			strings.Fields(c.args)...)...)
		if got.Status != c.status {
			t.Errorf("%s: %+v", c.args, got)
		}
	}
}

// A configuration is refused with the text of the condition.
func TestBundleManifestsConfigRecorded(t *testing.T) {
	dir := clusterDir(t)
	var extension struct {
		Status struct {
			Conditions []struct{ Type, Message string }
		}
	}
	clitest.ClusterFile(t, "ce-config-single-own.json", &extension)
	_, want, _ := strings.Cut(extension.Status.Conditions[5].Message, `version "1.0.0": `)
	got := clitest.RunProgram(t, dir, "bindery", "bundle", "manifests", "snglns-1.0.0", "--watch-namespace", "snglns2-ns",
		"--install-namespace", "snglns2-ns")
	if want == "" || got.Status != 1 || !strings.Contains(strings.ReplaceAll(got.Stderr, "\n  ", "\n"), ":\n"+want+"\n") {
		t.Errorf("%+v\nwant %s", got, want)
	}
}

// A name that no ClusterExtension can have, and a runtime that there is not.
func TestBundleManifestsRuntimeRefused(t *testing.T) {
	dir := clusterDir(t)
	long := strings.Repeat("a", 54)
	for args, want := range map[string]string{
		"--olm-labels A":       `metadata.name: Invalid value: "A"`,
		"--olm-labels " + long: "its name is longer than 53 characters",
		"--runtime boxcutter --olm-labels " + long + long: "must be no more than 63 bytes",
		"--runtime Helm": `unknown runtime "Helm", did you mean "helm"?`,
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"bundle", "manifests", "widget-1.2.0"},
			strings.Fields(args)...)...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	rendered(t, dir, "widget-1.2.0", "--runtime", "boxcutter", "--olm-labels", long)
}
