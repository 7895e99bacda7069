package mirror_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// An API server takes no ClusterCatalog whose tag and what stands between it and the port of the registry are longer
// than 127 characters: the resources say so. A digest is taken.
func TestMirrorWarnsOfRefusedClusterCatalog(t *testing.T) {
	source, target := testregistry.New(t), testregistry.New(t)
	base := clitest.OpmFor("amd64")
	base.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
	bundle := source.AddImage(t, "acme/etcd", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
	base.Layers = append(base.Layers, map[string]string{"configs/etcd/catalog.json": strings.NewReplacer("NAME", "etcd",
		"IMAGE", "registry.example.com/acme/etcd@"+bundle.String()).Replace(clitest.OneBundle)})
	source.AddImage(t, "acme/catalog", "v1", base)
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "set.yaml"), clitest.ExampleImageSet)
	const want = "an API server refuses the ClusterCatalog: spec.source.image.ref: Invalid value: "
	for _, c := range []struct {
		path, flag string
		warns      bool
	}{{"m", "--icsp", false}, {strings.Repeat("long/", 24) + "m", "--icsp", true},
		{strings.Repeat("long/", 24) + "m", "--pin-catalogs", false}} {
		got := clitest.RunProgram(t, dir, "bindery", "mirror", "run", "-c", "set.yaml", "--workspace", t.TempDir(),
			"docker://"+target.Host()+"/"+c.path, "--use-http", "--registries-conf",
			source.RegistriesConf(t, "registry.example.com"), "--no-cache", c.flag)
		if got.Status != 0 || strings.Contains(got.Stderr, want) != c.warns || c.warns && !strings.Contains(got.Stderr,
			"the tag must not be more than 127 characters; by its digest the image has a name that is taken (--pin-catalogs)") {
			t.Errorf("%s %s: %+v", c.path, c.flag, got)
		}
	}
}
