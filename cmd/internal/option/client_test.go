package option_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// bundleImage returns the image of a real bundle.
func bundleImage(t *testing.T) testregistry.Image {
	t.Helper()
	return testregistry.Image{
		Labels: map[string]string{bundle.AnnotationPackage: "etcd"},
		Layers: []map[string]string{
			testregistry.Files(t, "../../../testdata/bundles/etcd/0.9.4/manifests", "manifests"),
			testregistry.Files(t, "../../../testdata/bundles/etcd/0.9.4/metadata", "metadata"),
		},
	}
}

// The error about an exceeded image limit names the flag that raises it; invalid values are refused.
func TestImageLimitsAreFlags(t *testing.T) {
	dir := t.TempDir()
	bundleImage(t).WriteLayout(t, filepath.Join(dir, "etcd.oci"), "v1")
	for _, flag := range []string{"--max-file-size 1KiB", "--max-image-size 2KiB", "--max-download-size 100",
		"--max-entries 2"} {
		name, _, _ := strings.Cut(flag, " ")
		got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(flag), "render", "oci:etcd.oci:v1")...)
		if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "hint: "+name+" raises the limit") {
			t.Errorf("%s: %+v", flag, got)
		}
	}
	for _, flag := range []string{"--max-file-size 1.5G", "--max-image-size 0", "--max-download-size -1",
		"--max-entries -2", "--max-ratio -1"} {
		name, _, _ := strings.Cut(flag, " ")
		got := clitest.RunProgram(t, dir, "bindery", append([]string{"render", "oci:etcd.oci:v1"}, strings.Fields(flag)...)...)
		if got.Status != 1 || !strings.Contains(got.Stderr, "invalid "+name+" value") {
			t.Errorf("%s: %+v", flag, got)
		}
	}
	if got := clitest.RunProgram(t, dir, "bindery", "render", "oci:etcd.oci:v1", "--max-file-size", "64KiB"); got.Status != 0 {
		t.Errorf("%+v", got)
	}
}

// If the lock file cannot be written, nothing is printed.
func TestNoAnswerWithoutTheLock(t *testing.T) {
	dir := t.TempDir()
	bundleImage(t).WriteLayout(t, filepath.Join(dir, "etcd.oci"), "v1")
	got := clitest.RunProgram(t, dir, "bindery", "render", "oci:etcd.oci:v1", "--lock", "/proc/images.lock")
	if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, "write the lock file") {
		t.Errorf("status %d, %d bytes of an answer\n%s", got.Status, len(got.Stdout), got.Stderr)
	}
}
