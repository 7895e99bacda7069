package build_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/olmv1/catalogdtest"
)

// Every command that adds a catalog to a base image with a catalog hides the base's from container engines and from
// catalogd: removed packages, and packages with other file names in the new catalog.
func TestCatalogOfTheBaseIsNotShown(t *testing.T) {
	dir := clitest.IndexDir(t)
	r := testregistry.New(t)
	base := clitest.OpmFor("amd64")
	base.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
	base.Layers = append(base.Layers, map[string]string{"configs/old/catalog.json": clitest.PackageText("old"),
		"configs/etcd/catalog.json":               clitest.PackageText("etcd"),
		"configs/silicom-sts-operator/index.json": clitest.PackageText("silicom-sts-operator"), "cache/old.cache": "x"})
	r.AddImage(t, "acme/base", "v1", base)
	from := r.Host() + "/acme/base:v1"
	r.AddImage(t, "acme/one", "v1", testregistry.Image{Labels: base.Labels,
		Layers: []map[string]string{{"configs/one/catalog.json": clitest.PackageText("one")}}})
	clitest.WriteFile(t, filepath.Join(dir, "compose.yaml"),
		"name: all\nrepo: "+r.Host()+"/acme/all\ntag: v1\nreferences:\n- name: one\n  image: "+r.Host()+
			"/acme/one:v1\n")
	for _, c := range []struct {
		args string
		gone string
	}{
		{"build catalog catalog --server none --base " + from, "old"},
		{"index rm -o silicom-sts-operator -f oci:fbc.oci:v1 -i " + from, "silicom-sts-operator"},
		{"index rm -o old -f " + from + " -i " + from, "old"},
		{"catalog rm " + from + " silicom-sts-operator --base " + from, "silicom-sts-operator"},
		{"catalog filter " + from + " -p etcd --base " + from, "silicom-sts-operator"},
		{"catalog prune " + from + " --keep etcd --base " + from, "old"},
		{"migrate index.db --base " + from, "old"},
		{"build compose compose.yaml --server none --base " + from, "etcd"},
	} {
		t.Run(c.args[:strings.Index(c.args, " ")]+" "+strings.Fields(c.args)[1], func(t *testing.T) {
			out := "oci:" + filepath.Join(t.TempDir(), "out") + ":v1"
			clitest.Done(t, dir, "bindery",
				append(strings.Fields(c.args), "--output", out, "-t", "acme/new:v1", "--use-http", "--no-cache")...)
			img, shown := clitest.ImageFiles(t, out)
			got := catalogdtest.Files(t, img)
			maps.DeleteFunc(shown, func(name, _ string) bool { return !strings.HasPrefix(name, "configs/") })
			if !maps.Equal(got, shown) {
				t.Errorf("catalogd has %q, and container engines have %q", slices.Sorted(maps.Keys(got)),
					slices.Sorted(maps.Keys(shown)))
			}
			for name := range got {
				if strings.HasPrefix(name, "configs/"+c.gone+"/") {
					t.Errorf("catalogd shows %s", name)
				}
			}
			if got := clitest.RunProgram(t, dir, "bindery", "verify", out); strings.Contains(got.Stdout, "OLM v1") ||
				strings.Contains(got.Stdout, "catalog:") {
				t.Errorf("verify: %s", got.Stdout)
			}
		})
	}
}
