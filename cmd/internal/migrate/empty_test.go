package migrate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// emptyDir returns a directory with the database small.db, the empty directory empty, an empty database, and a
// composite of an empty catalog.
func emptyDir(t *testing.T) string {
	t.Helper()
	dir := clitest.WorkDir(t)
	if err := os.Mkdir(filepath.Join(dir, "empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "empty.db"))
	clitest.Done(t, dir, "bindery", "registry", "rm", "-d", "empty.db", "-o", "etcd,silicom-sts-operator")
	clitest.Done(t, dir, "bindery", "build", "catalog", "empty", "-t", "acme/empty:v1", "--output", "oci:empty.oci:v1",
		"--server", "none", "--allow-empty")
	clitest.Done(t, dir, "bindery", "build", "catalog", "small.db", "-t", "acme/full:v1", "--output", "oci:full.oci:v1",
		"--server", "none")
	clitest.WriteFile(t, filepath.Join(dir, "compose.yaml"),
		"name: c\nrepo: acme/c\ntag: v1\nreferences:\n- name: empty\n  image: oci:empty.oci:v1\n")
	return dir
}

// A catalog without packages is an error unless a flag allows it, and nothing is written. As opm it is a warning.
func TestEmptyCatalogs(t *testing.T) {
	dir := emptyDir(t)
	for _, c := range []struct {
		args string
		opm  bool // the command has opm's answer under that name
	}{
		{"validate empty", true},
		{"validate empty -o json", true},
		{"build catalog empty -t acme/c:v1 --output oci-archive:OUT --server none", false},
		{"build catalog empty.db -t acme/c:v1 --output oci-archive:OUT --server none", false},
		{"build catalog empty --plan --server none", false},
		{"build compose compose.yaml --output oci-archive:OUT --server none --any-packages", false},
		{"build compose compose.yaml --plan --server none --any-packages", false},
		{"migrate empty OUT", true},
		{"migrate empty.db OUT", true},
		{"migrate empty.db OUT --verify", true},
		{"migrate empty.db -t acme/c:v1 --output oci-archive:OUT --server none", false},
		{"catalog rm oci:full.oci:v1 etcd silicom-sts-operator -t acme/c:v1 --output oci-archive:OUT --server none",
			false},
		{"index rm -f oci:full.oci:v1 -o etcd,silicom-sts-operator -t acme/c:v1 --output oci-archive:OUT --server none",
			true},
		{"index rm -f oci:full.oci:v1 -o etcd,silicom-sts-operator -t acme/c:v1 --output oci-archive:OUT --server " +
			"none --output-format sqlite", true},
	} {
		t.Run(c.args, func(t *testing.T) {
			// the test's own directory has commas in its name, at which --output is split
			temp, err := os.MkdirTemp("", "bindery-empty-*")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(temp)
			out := filepath.Join(temp, "out")
			args := strings.Fields(strings.ReplaceAll(c.args, "OUT", out))
			got := clitest.RunProgram(t, dir, "bindery", args...)
			if got.Status != 1 || !strings.Contains(got.Stderr+got.Stdout, "holds no packages") {
				t.Errorf("%+v", got)
			}
			if _, err := os.Lstat(out); err == nil {
				t.Error("something was written")
			}
			if got := clitest.RunProgram(t, dir, "bindery", append(args, "--allow-empty")...); got.Status != 0 {
				t.Errorf("--allow-empty: %+v", got)
			}
			if !c.opm {
				return
			}
			if err := os.RemoveAll(out); err != nil {
				t.Fatal(err)
			}
			if got := clitest.RunProgram(t, dir, "opm", args...); got.Status != 0 || !strings.Contains(got.Stderr,
				"holds no packages") {
				t.Errorf("opm: %+v", got)
			}
		})
	}
	t.Run("--compat=opm", func(t *testing.T) {
		out := filepath.Join(t.TempDir(), "out")
		if got := clitest.RunProgram(t, dir, "bindery", "migrate", "empty.db", out, "--compat=opm"); got.Status != 0 ||
			!strings.Contains(got.Stderr, "holds no packages") {
			t.Errorf("%+v", got)
		}
	})
	t.Run("a list", func(t *testing.T) {
		clitest.WriteFile(t, filepath.Join(dir, "list"), "empty.db out-list\n")
		if got := clitest.RunProgram(t, dir, "bindery", "migrate", "--from-file", "list"); got.Status != 1 ||
			!strings.Contains(got.Stderr, "holds no packages") {
			t.Errorf("%+v", got)
		}
	})
}

// A published catalog is not replaced by an empty one.
func TestEmptyCatalogIsNotPushed(t *testing.T) {
	dir := emptyDir(t)
	name := testregistry.New(t).Host() + "/acme/catalog:v1"
	clitest.Done(t, dir, "bindery", "build", "catalog", "cat", "-t", name, "--push", "--use-http", "--server", "none")
	before := clitest.Done(t, dir, "bindery", "list", "packages", name, "--use-http")
	if got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "empty", "-t", name, "--push", "--use-http", "--server",
		"none"); got.Status != 1 ||
		!strings.Contains(got.Stderr, "hint: --allow-empty") {
		t.Errorf("%+v", got)
	}
	if after := clitest.Done(t, dir, "bindery", "list", "packages", name, "--use-http"); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

// A catalog whose packages are all invalid counts as empty.
func TestMigrateLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	clitest.WriteFile(t, filepath.Join(dir, "cat", "catalog.yaml"), "schema: olm.package\nname: broken\n")
	got := clitest.RunProgram(t, dir, "bindery", "migrate", "cat", "out", "--keep-going", "--report", "report.json")
	if got.Status != 1 || !strings.Contains(got.Stderr,
		`"cat" holds no packages: invalid packages were skipped (1): broken`) {
		t.Errorf("%+v", got)
	}
	if report := clitest.ReadFile(t, filepath.Join(dir, "report.json")); !strings.Contains(report, `"quarantined"`) {
		t.Error(report)
	}
}

// Files for building an image are not generated for an empty catalog either.
func TestGenerateRefusesAnEmptyCatalog(t *testing.T) {
	dir := emptyDir(t)
	args := strings.Fields("index rm -f oci:full.oci:v1 -o etcd,silicom-sts-operator --generate")
	if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 1 || !strings.Contains(got.Stderr,
		"hint: --allow-empty") {
		t.Errorf("%+v", got)
	}
	for _, file := range []string{"configs", "index.Dockerfile"} {
		if _, err := os.Lstat(filepath.Join(dir, file)); err == nil {
			t.Errorf("%s was written", file)
		}
	}
	if got := clitest.RunProgram(t, dir, "bindery", append(args, "--allow-empty")...); got.Status != 0 {
		t.Errorf("--allow-empty: %+v", got)
	}
	if got := clitest.RunProgram(t, dir, "opm", args...); got.Status != 0 || !strings.Contains(got.Stderr,
		"holds no packages") {
		t.Errorf("opm: %+v", got)
	}
}
