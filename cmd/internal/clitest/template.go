package clitest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// ExampleTemplates writes templates to a directory with a bundle and its image.
func ExampleTemplates(t *testing.T, dir string) {
	t.Helper()
	testregistry.Image{
		Labels: map[string]string{"operators.operatorframework.io.bundle.package.v1": "etcd"},
		Layers: []map[string]string{testregistry.Files(t, filepath.Join(dir, "bundle"), "")},
	}.WriteLayout(t, filepath.Join(dir, "bundle.oci"), "v0.9.4")
	for name, text := range map[string]string{
		"template.yaml": `schema: olm.template.basic
entries:
- schema: olm.package
  name: etcd
  defaultChannel: stable
- schema: olm.channel
  package: etcd
  name: stable
  entries:
  - name: etcdoperator.v0.9.4
- schema: olm.bundle
  image: oci:bundle.oci:v0.9.4
`,
		"semver.yaml": `schema: olm.semver
stable:
  bundles:
  - image: oci:bundle.oci:v0.9.4
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
