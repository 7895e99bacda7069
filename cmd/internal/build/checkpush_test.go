package build_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// commandsThatPush are the commands that build an image, without their destinations; db.oci and compose.yaml are in the
// working directory.
var commandsThatPush = []string{
	"build catalog catalog --server none",
	"build bundle etcd",
	"build compose compose.yaml --server none",
	"index add -b= -f oci:fbc.oci:v1 --server none",
	"catalog rm oci:fbc.oci:v1 etcd --server none",
	"migrate index.db --server none",
}

// A registry that refuses uploads is detected before anything is built; a dry run does not contact it.
func TestPushIsCheckedBeforeTheWork(t *testing.T) {
	dir := clitest.IndexDir(t)
	r := testregistry.New(t)
	r.AddImage(t, "acme/one", "v1", testregistry.Image{Labels: map[string]string{clitest.TestConfigsLabel: "/configs"},
		Layers: []map[string]string{{"configs/one/catalog.json": clitest.PackageText("one")}}})
	clitest.WriteFile(t, dir+"/compose.yaml",
		"name: all\nrepo: "+r.Host()+"/acme/all\ntag: v1\nreferences:\n- name: one\n  image: "+r.Host()+
			"/acme/one:v1\n")
	clitest.WriteFile(t, dir+"/list", "index.db xxx -> "+r.Host()+"/acme/new:v1\n")
	r.Interfere(func(w http.ResponseWriter, q *http.Request) bool {
		if q.Method == http.MethodPost {
			w.WriteHeader(http.StatusForbidden)
			io.WriteString(w, `{"errors":[{"code":"DENIED","message":"quota exceeded"}]}`)
		}
		return q.Method == http.MethodPost
	})
	for _, command := range append(commandsThatPush, "migrate --from-file list --out-dir out --server none") {
		r.Forget()
		args := append(strings.Fields(command), "-t", r.Host()+"/acme/new:v1", "--push", "--use-http", "--no-cache")
		if strings.Contains(command, "--from-file") {
			args = append(strings.Fields(command), "--push", "--use-http", "--no-cache")
		}
		got := clitest.RunProgram(t, dir, "bindery", args...)
		if got.Status == 0 || !strings.Contains(got.Stderr, "quota exceeded") || strings.Contains(got.Stderr,
			"assembled") {
			t.Errorf("%s: %+v", command, got)
		}
		for _, q := range r.Requests() {
			if !strings.HasPrefix(q, "GET /v2/") && q != "POST /v2/acme/new/blobs/uploads/" {
				t.Errorf("%s: %s", command, q)
			}
		}
		r.Forget()
		if got := clitest.RunProgram(t, dir, "bindery", append(args, "--dry-run")...); got.Status != 0 {
			t.Errorf("%s: %+v", command, got)
		}
		for _, q := range r.Requests() {
			if !strings.HasPrefix(q, "GET /v2/") {
				t.Errorf("%s, dry run: %s", command, q)
			}
		}
	}
}

// A name without a registry does not default to docker.io.
func TestPushNamesItsRegistry(t *testing.T) {
	dir := clitest.IndexDir(t)
	clitest.WriteFile(t, dir+"/compose.yaml",
		"name: all\nrepo: acme/all\ntag: v1\nreferences:\n- name: one\n  image: oci:fbc.oci:v1\n")
	clitest.WriteFile(t, dir+"/list", "index.db x -> acme/new:v1\n")
	for _, command := range commandsThatPush {
		for _, where := range []string{"-t acme/new:v1 --push", "-t x:v1 --output docker://acme/new:v1",
			"-t new:v1 --push --dry-run"} {
			got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(command), strings.Fields(where)...)...)
			if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr,
				`new:v1" names no registry to push to`) || !strings.Contains(got.Stderr, "or docker.io/") {
				t.Errorf("%s %s: %+v", command, where, got)
			}
		}
	}
	got := clitest.RunProgram(t, dir, "bindery", "migrate", "--from-file", "list", "--out-dir", "out", "--server", "none",
		"--push")
	if got.Status != 1 || !strings.Contains(got.Stderr, `"acme/new:v1" names no registry to push to`) {
		t.Errorf("%+v", got)
	}
}

// A registries.conf in version 1 is accepted with one warning, however many requests are made.
func TestOldRegistriesConfIsReportedOnce(t *testing.T) {
	dir := clitest.EditDir(t)
	r := testregistry.New(t)
	r.AddImage(t, "acme/one", "v1",
		testregistry.Image{Labels: map[string]string{clitest.TestConfigsLabel: "/configs"},
			Layers: []map[string]string{{"configs/one/catalog.json": clitest.PackageText("one"),
				"configs/two/catalog.json": clitest.PackageText("two")}}})
	clitest.WriteFile(t, dir+"/registries.conf", "[registries.insecure]\nregistries = ['"+r.Host()+"']\n")
	got := clitest.RunProgram(t, dir, "bindery", "catalog", "rm", r.Host()+"/acme/one:v1", "one", "-t", r.Host()+"/acme/two:v1",
		"--push", "--server", "none", "--no-cache", "--registries-conf", "registries.conf")
	if got.Status != 0 || strings.Count(got.Stderr, "registries.conf is in version 1 of its format") != 1 {
		t.Errorf("%+v", got)
	}
}
