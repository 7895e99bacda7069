package ocmirror_test

import (
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// "oc-mirror list operators" prints the table of "opm alpha list packages", display names included, whether the bundles
// have their manifests or metadata alone, from a directory, a database and an image.
func TestOCMirrorListsDisplayNames(t *testing.T) {
	dir := clitest.WorkDir(t)
	clitest.Done(t, dir, "bindery", "migrate", "small.db", "objects")
	clitest.Done(t, dir, "bindery", "migrate", "small.db", "metadata", "--migrate-level", "bundle-object-to-csv-metadata")
	clitest.Done(t, dir, "bindery", "build", "catalog", "metadata", "-t", "registry.example.com/acme/catalog:v1", "--server",
		"none", "--output", "oci:image:v1")
	for _, catalog := range []string{"small.db", "objects", "metadata", "oci:image:v1"} {
		want := clitest.Done(t, dir, "opm", "alpha", "list", "packages", catalog)
		if !strings.Contains(want, "Silicom STS Operator") {
			t.Fatalf("%s: opm prints\n%s", catalog, want)
		}
		if got := clitest.Done(t, dir, "oc-mirror", "list", "operators", "--catalog", catalog); got != want {
			t.Errorf("%s:\n%sinstead of\n%s", catalog, got, want)
		}
		of := clitest.Done(t, dir, "oc-mirror", "list", "operators", "--catalog", catalog, "--package", "silicom-sts-operator")
		if table, channels, _ := strings.Cut(of, "\n\n"); !strings.Contains(table, "Silicom STS Operator") ||
			strings.Contains(of, "etcd") || !strings.HasPrefix(channels, "PACKAGE ") {
			t.Errorf("%s: of a package\n%s", catalog, of)
		}
		if got := clitest.Done(t, dir, "oc-mirror", "list", "operators", "--catalog", catalog, "--package", "etcd", "--channel",
			"alpha"); got != "VERSIONS\n0.6.1\n" {
			t.Errorf("%s: of a channel\n%s", catalog, got)
		}
	}
}
