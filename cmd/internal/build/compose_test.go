package build_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	buildcmd "github.com/operator-bindery/bindery/cmd/internal/build"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// publishPackages starts a registry with images of packages and creates a directory with their catalogs and
// compose.yaml.
func publishPackages(t *testing.T, names []string, flags ...string) (dir string, registry *testregistry.Registry) {
	t.Helper()
	dir, registry = t.TempDir(), testregistry.New(t)
	config := "name: community\nrepo: " + registry.Host() + "/acme/community\ntag: v1\nreferences:\n"
	for _, name := range names {
		clitest.WriteFile(t, filepath.Join(dir, name, name, "catalog.json"), clitest.PackageText(name))
		clitest.WriteFile(t, filepath.Join(dir, "all", name, "catalog.json"), clitest.PackageText(name))
		image := registry.Host() + "/teams/" + name + ":v1"
		clitest.Done(t, dir, "bindery",
			append([]string{"build", "catalog", name, "-t", image, "--push", "--use-http", "--server", "none"},
				flags...)...)
		config += "- name: " + name + "\n  image: " + image + "\n"
	}
	clitest.WriteFile(t, filepath.Join(dir, "compose.yaml"), config)
	return dir, registry
}

// Composing downloads no layer and builds the image of all catalogs under the name in the file.
func TestBuildCompose(t *testing.T) {
	dir, registry := publishPackages(t, []string{"beta", "alpha", "gamma"})
	common := []string{"--use-http", "--no-cache", "--server", "none"}
	want := clitest.LastDigest(t,
		clitest.Done(t, dir, "bindery", "build", "catalog", "all", "-t", "x:v1", "--dry-run", "--server", "none"))
	registry.Forget()
	answer := clitest.Done(t, dir, "bindery", append([]string{"build", "compose", "compose.yaml", "--push"}, common...)...)
	if got := clitest.LastDigest(t, answer); got != want || !strings.Contains(answer,
		registry.Host()+"/acme/community@sha256:") {
		t.Errorf("%s instead of %s", answer, want)
	}
	gets := 0
	for _, r := range registry.Requests() {
		if strings.HasPrefix(r, "GET /v2/teams/") && strings.Contains(r, "/blobs/") {
			gets++
		}
	}
	if gets != 3 {
		t.Errorf("%d blobs were read, of which the configurations are 3: %v", gets, registry.Requests())
	}
	if got := clitest.Done(t, dir, "bindery", "list", "packages", "--use-http", registry.Host()+"/acme/community:v1",
		"--no-cache"); !strings.Contains(got, "alpha") || !strings.Contains(got, "gamma") {
		t.Error(got)
	}
	// An empty destination gets all layers.
	clitest.Done(t, dir, "bindery", append([]string{"build", "compose", "compose.yaml", "-t", "acme/all:v1"}, common...)...)
	if got := clitest.Done(t, dir, "bindery", "list", "packages", "oci:all.oci:v1"); !strings.Contains(got, "beta") {
		t.Error(got)
	}
	for _, flags := range [][]string{{"--validate"}, {"--compression", "gzip"}, {"--jobs", "1", "--retries", "0"}} {
		if got := clitest.LastDigest(t,
			clitest.Done(t, dir, "bindery", append(append([]string{"build", "compose", "compose.yaml", "--dry-run"}, common...),
				flags...)...)); got != want {
			t.Errorf("%v: %s instead of %s", flags, got, want)
		}
	}
}

// Images of other tools are read: docker format, without a cache, with a database.
func TestBuildComposeOfForeignImages(t *testing.T) {
	dir, registry := publishPackages(t, []string{"alpha", "beta"}, "--format", "docker")
	common := []string{"--use-http", "--no-cache", "--server", "none"}
	want := clitest.LastDigest(t,
		clitest.Done(t, dir, "bindery", "build", "catalog", "all", "-t", "x:v1", "--dry-run", "--server", "none"))
	got := clitest.RunProgram(t, dir, "bindery",
		append([]string{"build", "compose", "compose.yaml", "--dry-run"}, common...)...)
	if got.Status != 0 || clitest.LastDigest(t, got.Stdout) != want || !strings.Contains(got.Stderr,
		"packed: alpha, beta: docker manifests") {
		t.Errorf("%+v, expected %s", got, want)
	}
	clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "small.db"))
	clitest.Done(t, dir, "bindery", "index", "rm", "--from-index", "small.db", "-o", "silicom-sts-operator", "-t",
		registry.Host()+"/teams/db:v1", "--push", "--server", "none", "--use-http", "--output-format", "sqlite")
	answer := clitest.Done(t, dir, "bindery",
		append([]string{"build", "compose", "compose.yaml", "--plan", "--any-packages", "--metadata-file", "-",
			"--reference", "database=" + registry.Host() + "/teams/db:v1"}, common...)...)
	var plan buildcmd.Composition
	if err := json.Unmarshal([]byte(answer), &plan); err != nil {
		t.Fatal(err)
	}
	if len(plan.Composed) != 3 || len(plan.Composed[2].Packed) == 0 ||
		plan.Composed[2].Why != "it contains a database" || len(plan.Layers) != 2+len(plan.Composed[2].Packed) {
		t.Errorf("%s", answer)
	}
}

// All problems of a configuration or its references are reported together, before anything is written.
func TestBuildComposeErrors(t *testing.T) {
	dir, registry := publishPackages(t, []string{"alpha", "beta"})
	host := registry.Host()
	clitest.WriteFile(t, filepath.Join(dir, "wrong.yaml"),
		"name: a\nrepository: b\nreferences:\n- name: x\n- image: NOT AN IMAGE\n")
	clitest.WriteFile(t, filepath.Join(dir, "swapped.yaml"),
		"references:\n- name: alpha\n  image: "+host+"/teams/beta:v1\n- name: beta\n  image: "+host+"/teams/alpha:v1\n")
	clitest.WriteFile(t, filepath.Join(dir, "absent.yaml"),
		"references:\n- name: alpha\n  image: "+host+"/teams/none:v1\n- name: beta\n  image: "+host+
			"/teams/nothing:v1\n")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"fields": {[]string{"wrong.yaml", "-t", "x:v1"},
			[]string{`wrong.yaml:2:1: unknown field "repository"`, "wrong.yaml:4:3: references[0].image: missing",
				"wrong.yaml:5:3: references[1].name: missing", "references[1].image"}},
		"swapped": {[]string{"swapped.yaml", "-t", "x:v1"},
			[]string{`reference "alpha"`, `but "beta"`, `reference "beta"`, "--any-packages"}},
		"absent": {[]string{"absent.yaml", "-t", "x:v1"}, []string{"/teams/none", "/teams/nothing"}},
		"twice": {[]string{"compose.yaml", "--any-packages", "--reference", "more=" + host + "/teams/beta:v1"},
			[]string{`package "beta" is already in reference "beta"`}},
		"no name": {[]string{"swapped.yaml"}, []string{"tag"}},
		"no file": {[]string{"none.yaml"}, []string{"none.yaml"}},
		"a reference": {[]string{"compose.yaml", "--reference", "alpha=catalog"},
			[]string{"--reference", "not the name of an image"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := clitest.RunProgram(t, dir, "bindery",
				append([]string{"build", "compose", "--use-http", "--no-cache", "--server", "none", "--retries", "0"},
					c.args...)...)
			if got.Status != 1 || got.Stdout != "" {
				t.Fatalf("%+v", got)
			}
			for _, want := range c.want {
				if !strings.Contains(got.Stderr, want) {
					t.Errorf("no %q in %s", want, got.Stderr)
				}
			}
		})
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.oci")); len(left) != 0 {
		t.Errorf("written: %v", left)
	}
	// A bundle is refused as a reference.
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	clitest.Done(t, dir, "bindery", "build", "bundle", "bundle", "-t", "etcd:v1")
	got := clitest.RunProgram(t, dir, "bindery", "build", "compose", "compose.yaml", "--use-http", "--no-cache", "--dry-run",
		"--server", "none", "--reference", "etcd=oci:etcd.oci:v1")
	if got.Status != 1 || !strings.Contains(got.Stderr, "bundle image, not a catalog") {
		t.Errorf("%+v", got)
	}
}
