package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// A command that ends with the name of an image by its digest, and has not pushed it, says so.
func TestNotPushed(t *testing.T) {
	dir, r := clitest.WorkDir(t), testregistry.New(t)
	if err := os.CopyFS(filepath.Join(dir, "bundle"), os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	clitest.WriteFile(t, filepath.Join(dir, "file", "Containerfile"), "FROM scratch\nCOPY Containerfile /x\n")
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "--output", "oci:base:v1", "--server", "none")
	for _, line := range []string{"build catalog cat --server none", "build bundle bundle", "build containerfile file",
		"migrate small.db --server none", "catalog filter oci:base:v1 -p etcd --server none",
		"index rm -f small.db -o etcd --server none"} {
		for more, want := range map[string]bool{"": true, "--output oci:x:v1": true, "--push": false, "--dry-run": false, "-q": false,
			"--output docker://" + r.Host() + "/acme/other:v1": false} {
			if strings.HasPrefix(line, "migrate") && more == "--dry-run" {
				continue
			}
			args := strings.Fields(line + " -t " + r.Host() + "/acme/x:v1 --use-http " + more)
			got := clitest.RunProgram(t, dir, "bindery", args...)
			if got.Status != 0 || strings.Contains(got.Stderr, "not pushed (--push)\n") != want {
				t.Errorf("%q: %+v", args, got)
			}
			if err := os.RemoveAll(filepath.Join(dir, "x.oci")); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// "same" is about the catalog, so that a verification without keys says that it has not looked at signatures.
func TestVerifySaysWhatItLeavesOut(t *testing.T) {
	dir := clitest.WorkDir(t)
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "--output", "oci:x:v1", "--server", "none")
	clitest.WriteFile(t, filepath.Join(dir, "pass"), "secret")
	clitest.Done(t, dir, "bindery", "keys", "generate", "--sign-passphrase-file", "pass", "--name", "k")
	const text = "signatures were not looked at (--key, --certificate-identity, --signatures)\n"
	for _, format := range []string{"text", "json"} {
		if got := clitest.RunProgram(t, dir, "bindery", "verify", "oci:x:v1", "-o", format); got.Status != 0 ||
			!strings.Contains(got.Stderr, text) {
			t.Errorf("%+v", got)
		}
	}
	if got := clitest.RunProgram(t, dir, "bindery", "verify", "oci:x:v1", "--key", "k.pub"); strings.Contains(got.Stderr, text) {
		t.Errorf("%+v", got)
	}
}
