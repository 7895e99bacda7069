package sign_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The provenance says what was built from what, by which server, and nothing that is secret.
func TestProvenance(t *testing.T) {
	dir := supplyDir(t)
	reg := testregistry.New(t)
	base := reg.Host() + "/base/static"
	clitest.Done(t, dir, "bindery", "build", "bundle", "etcd", "-t", base+":v1", "--push", "--use-http")
	got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "cat", "-t", "registry.example.com/acme/catalog:v1",
		"--provenance", "--builder-id", "https://ci.example.com/builder", "--base", base+":v1", "--use-http",
		"--no-cache",
		"--max-layers", "7", "--label", "a=1,b=2", "--platform", "linux/amd64", "--metadata-file", "account")
	if got.Status != 0 || !strings.Contains(got.Stderr, "the provenance is not signed") {
		t.Fatalf("%+v", got)
	}
	all := attachedTo(t, "oci:"+filepath.Join(dir, "catalog.oci:v1"))
	if len(all) != 1 || all[0].kind != statementType {
		t.Fatalf("%+v", all)
	}
	var s struct {
		Type          string `json:"_type"`
		PredicateType string
		Subject       []struct {
			Name   string
			Digest map[string]string
		}
		Predicate struct {
			BuildDefinition struct {
				BuildType            string
				ExternalParameters   map[string]any
				ResolvedDependencies []struct {
					Name, URI string
					Digest    map[string]string
				}
			}
			RunDetails struct {
				Builder  struct{ ID string }
				Metadata map[string]string
			}
		}
	}
	if err := json.Unmarshal([]byte(all[0].content), &s); err != nil {
		t.Fatal(err)
	}
	hex := strings.TrimPrefix(all[0].subject, "sha256:")
	if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" ||
		len(s.Subject) != 1 || s.Subject[0].Digest["sha256"] != hex ||
		s.Subject[0].Name != "registry.example.com/acme/catalog" {
		t.Errorf("%s", all[0].content)
	}
	d := s.Predicate.BuildDefinition
	for name, want := range map[string]any{"command": "build catalog", "maxLayers": 7.0, "format": "oci",
		"compression": "gzip", "sourceDateEpoch": 0.0} {
		if d.ExternalParameters[name] != want {
			t.Errorf("%s is %v", name, d.ExternalParameters[name])
		}
	}
	names := map[string]string{}
	for _, r := range d.ResolvedDependencies {
		names[r.Name] = r.Digest["sha256"]
	}
	if len(names) != 3 || len(names["base"]) != 64 || len(names["server"]) != 64 || len(names["source:cat"]) != 64 {
		t.Errorf("dependencies %v", names)
	}
	run := s.Predicate.RunDetails
	if run.Builder.ID != "https://ci.example.com/builder" || run.Metadata["invocationId"] != "urn:sha256:"+hex ||
		len(run.Metadata) != 1 {
		t.Errorf("%+v", run)
	}
	if !strings.HasSuffix(d.BuildType, "/build/catalog/v1") {
		t.Errorf("build type %s", d.BuildType)
	}
}

// With a lock, what was read is named as it is locked.
func TestProvenanceWithALock(t *testing.T) {
	dir := supplyDir(t)
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "-t", "x/one:v1", "--server", "none")
	clitest.WriteFile(t, filepath.Join(dir, "compose.yaml"), "references:\n- name: etcd\n  image: oci:one.oci:v1\n")
	for _, c := range []struct{ flag, want string }{{"", `"name":"image:oci:one.oci:v1"`},
		{"--lock=lock.json", `"name":"lock:oci:one.oci:v1"`}} {
		args := append(strings.Fields("build compose compose.yaml -t registry.example.com/a/b:v1 --output oci:all:v1 "+
			"--provenance --server none"), strings.Fields(c.flag)...)
		clitest.Done(t, dir, "bindery", args...)
		all := attachedTo(t, "oci:"+filepath.Join(dir, "all:v1"))
		if last := all[len(all)-1].content; !strings.Contains(last, c.want) ||
			!strings.Contains(last, `"name":"source:compose.yaml"`) {
			t.Errorf("%s: no %s in %s", c.flag, c.want, last)
		}
	}
}

// The values of build arguments, the paths of secrets and absolute paths are not written.
func TestProvenanceHasNoSecrets(t *testing.T) {
	dir := supplyDir(t)
	clitest.WriteFile(t, filepath.Join(dir, "secret.txt"), "hunter3")
	clitest.WriteFile(t, filepath.Join(dir, "etcd", "Containerfile"), "FROM scratch\nARG TOKEN\nCOPY manifests /manifests/\n")
	clitest.Done(t, dir, "bindery", "build", "containerfile", filepath.Join(dir, "etcd"), "-t", "acme/etcd:v1", "--build-arg",
		"TOKEN=hunter2", "--secret", "id=one,src=secret.txt", "--provenance", "--provenance-time", "--output",
		"oci:"+filepath.Join(dir, "out:v1"))
	all := attachedTo(t, "oci:"+filepath.Join(dir, "out:v1"))
	if len(all) != 1 {
		t.Fatalf("%+v", all)
	}
	for _, secret := range []string{"hunter2", "hunter3", "secret.txt", dir} {
		if strings.Contains(all[0].content, secret) {
			t.Errorf("it has %q:\n%s", secret, all[0].content)
		}
	}
	for _, want := range []string{`"buildArg":["TOKEN"]`, `"source:etcd"`, `"startedOn":"`, `"finishedOn":"`} {
		if !strings.Contains(all[0].content, want) {
			t.Errorf("it has no %s:\n%s", want, all[0].content)
		}
	}
}
