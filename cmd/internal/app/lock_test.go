package app_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/bundle"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// An exit status that is a result is not a failure: the lock file is written. If that fails, it is an error.
func TestLockOfAnAnswerByStatus(t *testing.T) {
	dir := t.TempDir()
	for name, blob := range map[string]string{"old": `{"schema":"olm.package","name":"a","defaultChannel":"x"}`,
		"new": `{"schema":"olm.package","name":"b","defaultChannel":"x"}`} {
		testregistry.Image{
			Labels: map[string]string{build.ConfigsLabel: "/configs"},
			Layers: []map[string]string{{"configs/c.json": blob}},
		}.WriteLayout(t, filepath.Join(dir, name), "v1")
	}
	testregistry.Image{
		Labels: map[string]string{bundle.AnnotationPackage: "etcd"},
		Layers: []map[string]string{{"manifests/a.yaml": "kind: Secret\n"}},
	}.WriteLayout(t, filepath.Join(dir, "bundle"), "v1")
	for line, image := range map[string]string{"diff oci:old:v1 oci:new:v1": "oci:new:v1",
		"bundle validate oci:bundle:v1 -o json": "oci:bundle:v1"} {
		got := clitest.RunProgram(t, dir, "bindery", append(strings.Fields(line), "--lock", "images.lock")...)
		if got.Status != 1 || got.Stdout == "" || strings.Contains(got.Stderr, "error:") {
			t.Errorf("%s: %+v", line, got)
		}
		lock, err := os.ReadFile(filepath.Join(dir, "images.lock"))
		if err != nil || !strings.Contains(string(lock), image) {
			t.Errorf("%s: %s (%v)", line, lock, err)
		}
		if err := os.RemoveAll(filepath.Join(dir, "images.lock")); err != nil {
			t.Fatal(err)
		}
		if runtime.GOOS != "linux" {
			continue
		}
		// No file can be created at this path.
		got = clitest.RunProgram(t, dir, "bindery", append(strings.Fields(line), "--lock", "/proc/images.lock")...)
		if got.Status != 1 || !strings.Contains(got.Stderr, "write the lock file") {
			t.Errorf("%s, with a lock file that cannot be written: %+v", line, got)
		}
	}
}
