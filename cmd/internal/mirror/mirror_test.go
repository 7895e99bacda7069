package mirror_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
	"github.com/operator-bindery/bindery/olmv1/catalogdtest"
)

// A rebuilt catalog keeps its source's server and base, and none of the layers that have only the source's catalog and
// caches: neither container engines nor catalogd see these, and they are not carried.
func TestMirroredCatalogCarriesNothingOfItsSource(t *testing.T) {
	for name, test := range map[string]struct {
		above  map[string]string
		layers int // of the source in the mirrored image
	}{
		"layers of their own": {nil, 2},
		"a layer above them":  {map[string]string{"etc/motd": "hello"}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			source, target := testregistry.New(t), testregistry.New(t)
			target.Separate(true)
			base := clitest.OpmFor("amd64")
			base.Labels = map[string]string{clitest.TestConfigsLabel: "/configs"}
			bundle := source.AddImage(t, "acme/etcd", "v1", testregistry.Image{Layers: []map[string]string{{"a": "b"}}})
			text := func(name string) string {
				return strings.NewReplacer("NAME", name, "IMAGE", "registry.example.com/acme/etcd@"+bundle.String()).
					Replace(clitest.OneBundle)
			}
			base.Layers = append(base.Layers,
				map[string]string{"configs/etcd/catalog.json": text("etcd"), "configs/old/catalog.json": text("old")},
				map[string]string{"tmp/cache/pogreb.v1/digest": "0"})
			if test.above != nil {
				base.Layers = append(base.Layers, test.above)
			}
			source.AddImage(t, "acme/catalog", "v1", base)
			dir := t.TempDir()
			clitest.WriteFile(t, filepath.Join(dir, "set.yaml"), clitest.ExampleImageSet)
			clitest.Done(t, dir, "bindery", "mirror", "run", "-c", "set.yaml", "--workspace", "ws",
				"docker://"+target.Host()+"/m", "--use-http", "--registries-conf",
				source.RegistriesConf(t, "registry.example.com"), "--no-cache")
			var from, to v1.Manifest
			for at, m := range map[*v1.Manifest][]byte{&from: source.Manifest("acme/catalog", "v1"),
				&to: target.Manifest("m/acme/catalog", "v1")} {
				if err := json.Unmarshal(m, at); err != nil {
					t.Fatal(err)
				}
			}
			kept := 0
			for n, l := range to.Layers {
				if n < len(from.Layers) && l.Digest == from.Layers[n].Digest {
					kept++
				}
			}
			if kept != test.layers {
				t.Errorf("%d layers of the source, expected %d", kept, test.layers)
			}
			out := "oci:" + filepath.Join(dir, "out") + ":v1"
			clitest.Done(t, dir, "bindery", "copy", target.Host()+"/m/acme/catalog:v1", out, "--use-http")
			img, shown := clitest.ImageFiles(t, out)
			if len(img.Config.RootFS.DiffIDs) != len(to.Layers) {
				t.Errorf("%d diff IDs for %d layers", len(img.Config.RootFS.DiffIDs), len(to.Layers))
			}
			files := catalogdtest.Files(t, img)
			if len(files) != 1 || files["configs/etcd/catalog.json"] == "" {
				t.Errorf("catalogd has %q", files)
			}
			for file := range shown {
				if strings.Contains(file, "old") || strings.HasPrefix(file, "tmp/cache/") {
					t.Errorf("engines have %s", file)
				}
			}
			if shown["bin/opm"] == "" {
				t.Error("the server is not there")
			}
		})
	}
}
