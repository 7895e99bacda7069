package configmap_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/bundle/configmap"
	"github.com/operator-bindery/bindery/check/bundlecheck"
)

// The size that a check of a bundle finds is that of the ConfigMap: of the metadata OLM copies only the annotations.
func TestCheckHasTheSizeOfTheConfigMap(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../../testdata/bundles/etcd/0.9.4")); err != nil {
		t.Fatal(err)
	}
	fsys := os.DirFS(dir)
	var sum int64
	for _, data := range write(t, fsys, configmap.Options{Gzip: true}).BinaryData {
		sum += int64(len(data))
	}
	for name, text := range map[string]string{
		"dependencies.yaml": "dependencies:\n- type: olm.package\n  value: {packageName: a, version: '>1.0.0'}\n",
		"properties.yaml":   "properties:\n- type: a\n  value: b\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, "metadata", name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	b, err := bundle.Read(t.Context(), fsys, bundle.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	report, err := bundlecheck.Run(t.Context(), fsys, b, bundlecheck.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if report.Size.Encoded != sum || sum == 0 {
		t.Errorf("got %d, the ConfigMap has %d", report.Size.Encoded, sum)
	}
}
