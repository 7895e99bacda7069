package app_test

import (
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/filelocktest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// Every command works on file systems without locks.
func TestFileSystemsWithoutLocks(t *testing.T) {
	r := testregistry.New(t)
	r.AddImage(t, "acme/one", "v1", testregistry.Image{Labels: map[string]string{clitest.TestConfigsLabel: "/configs"},
		Layers: []map[string]string{{"configs/one/catalog.json": clitest.PackageText("one")}}})
	for name, errno := range map[string]unix.Errno{"EOPNOTSUPP": unix.EOPNOTSUPP, "ENOSYS": unix.ENOSYS,
		"ENOLCK": unix.ENOLCK} {
		t.Run(name, func(t *testing.T) {
			dir := clitest.EditDir(t)
			filelocktest.Without(t, errno)
			t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
			clitest.WriteFile(t, filepath.Join(dir, "list"), "index.db many\n")
			for _, args := range []string{
				"build catalog catalog -t acme/a:v1 --server none",
				"build catalog catalog -t acme/a:v2 --server none --output oci:a.oci --output oci-archive:a.tar " +
					"--output dir:a.dir",
				"render " + r.Host() + "/acme/one:v1 --use-http --lock images.lock",
				"cache prune",
				"catalog rm catalog etcd",
				"catalog rm index.db etcd",
				"index rm -f oci:a.oci:v1 -o etcd -t acme/b:v1 --server none",
				"migrate index.db out",
				"migrate --from-file list --out-dir lists --report-dir reports",
			} {
				if got := clitest.RunProgram(t, dir, "bindery", strings.Fields(args)...); got.Status != 0 ||
					strings.Contains(got.Stderr, "lock") && !strings.Contains(args, "lock") {
					t.Errorf("%s: %+v", args, got)
				}
			}
			if got := clitest.Done(t, dir, "bindery", "list", "packages", "oci:a.oci:v2"); !strings.Contains(got, "silicom") {
				t.Error(got)
			}
			if got := clitest.Done(t, dir, "bindery", "list", "packages", "index.db"); strings.Contains(got, "etcd") {
				t.Error(got)
			}
		})
	}
}
