package bundle_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// The image has the rendered manifests, the labels of plain+v0, and is the same each time.
func TestPlainBundle(t *testing.T) {
	dir := clitest.ManifestsDir(t)
	args := []string{"build", "bundle", "bundle", "--bundle-format", "plain", "--watch-namespace", "w", "-t",
		"acme/etcd:v1"}
	first := clitest.Done(t, dir, "bindery", append(args, "--output", "oci:a.oci:v1")...)
	second := clitest.Done(t, dir, "bindery", append(args, "--output", "oci:b.oci:v1")...)
	digest := func(out string) string { _, d, _ := strings.Cut(strings.TrimSpace(out), "@sha256:"); return d }
	if digest(first) == "" || digest(first) != digest(second) {
		t.Errorf("%q and %q", first, second)
	}
	clitest.Done(t, dir, "bindery", "bundle", "unpack", "oci:a.oci:v1", "-o", "out")
	names, err := filepath.Glob(filepath.Join(dir, "out", "manifests", "*"))
	if err != nil || len(names) != 7 {
		t.Errorf("%q, %v", names, err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "out", "metadata", "annotations.yaml"))
	if err != nil || !strings.Contains(string(text), "mediatype.v1: plain+v0") {
		t.Errorf("%s, %v", text, err)
	}
	for _, c := range []struct {
		args string
		part string
	}{
		{"--bundle-format plain --package p", "--package has no effect with --bundle-format plain"},
		{"--bundle-format helm", "invalid --bundle-format value"},
		{"--gate DeploymentConfig", "--gate requires --bundle-format plain"},
	} {
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"build", "bundle", "bundle", "--error-format", "json"},
			strings.Fields(c.args)...)...)
		if err := clitest.Failed(got, 2, c.part); err != nil {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}
