package check_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// A bundle without an image cannot be installed, and what could not be asked for is not told to be read by --pull.
func TestPullWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	bundles, _ := clitest.ClusterBundles(t)
	dir := t.TempDir()
	for name, image := range map[string]string{"none": "", "down": "127.0.0.1:1/acme/widget:v1"} {
		clitest.WriteFile(t, filepath.Join(dir, name, "catalog.json"), clitest.CatalogOf(t, "widget", image, bundles["widget"], false))
	}
	for _, c := range []struct {
		args   string
		status int
		want   string
	}{
		{"check none --profile olmv1 --pull", 1, "widget/widget.v1.1.0: the bundle has no image\n"},
		{"resolve widget none --pull", 1, `error for resolved bundle "widget.v1.1.0" with version "1.1.0": the bundle has no image`},
		{"resolve widget none", 0, "bundle:    widget.v1.1.0"},
		{"check down --profile olmv1 --pull --retries 0", 0,
			"not known: whether OLM v1 installs 1 bundle, as images could not be asked for\n"},
		{"check down --profile olmv1 --pull --upgrades --retries 0", 0, "as images could not be asked for\n"},
		{"check down --profile olmv1", 0, "whose manifests the catalog lacks; --pull reads their images\n"},
	} {
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(c.args)...)
		if got.Status != c.status || !strings.Contains(got.Stdout+got.Stderr, c.want) ||
			strings.Contains(c.args, "--pull") && strings.Contains(got.Stdout, "--pull reads") {
			t.Errorf("%s: %+v, want %d and %q", c.args, got, c.status, c.want)
		}
	}
}
