package main

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestBundleUnpackJob(t *testing.T) {
	dir := t.TempDir()
	const ref = "registry.example.com/acme/etcd:v1"
	text := done(t, dir, "bindery", "bundle", "unpack-job", ref, "-n", "olm")
	var list struct {
		Kind  string
		Items []json.RawMessage
	}
	if err := json.Unmarshal([]byte(done(t, dir, "bindery", "bundle", "unpack-job", ref, "-n", "olm", "-o", "json")),
		&list); err != nil || list.Kind != "List" {
		t.Fatalf("%+v: %v", list, err)
	}
	documents := strings.Split(strings.TrimPrefix(text, "---\n"), "\n---\n")
	if len(documents) != 4 || len(list.Items) != 4 {
		t.Fatalf("%d documents and %d items", len(documents), len(list.Items))
	}
	var kinds []string
	for i, d := range documents {
		var a, b struct{ Kind string }
		if err := yaml.Unmarshal([]byte(d), &a); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(list.Items[i], &b); err != nil || a != b {
			t.Errorf("%v and %v: %v", a, b, err)
		}
		kinds = append(kinds, a.Kind)
	}
	if got := strings.Join(kinds, " "); got != "ConfigMap Role RoleBinding Job" {
		t.Errorf("got %s", got)
	}
	for args, want := range map[string]string{
		"": "accepts 1 arg(s)", ref + " -o xml": "invalid --output value",
		ref + " --catalog-source x": "expected NAME:UID", "UPPER/case": "bundle image",
		ref + " -n A --error-format json": `"class":2`,
	} {
		if got := runProgram(t, dir, "bindery",
			append([]string{"bundle", "unpack-job"}, strings.Fields(args)...)...); got.status != 1 ||
			got.stdout != "" || !strings.Contains(got.stderr, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
}
