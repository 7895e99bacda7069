package catalog_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// alter runs SQL on a database.
func alter(t *testing.T, path, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// Any edit of a database removes bundles that are in no channel, with a warning; prune-stranded removes only those.
func TestStrandedBundles(t *testing.T) {
	dir := clitest.EditDir(t)
	index := filepath.Join(dir, "index.db")
	alter(t, index,
		`INSERT INTO operatorbundle (name, bundlepath, version) VALUES ('lost.v1.0.0', 'example.com/lost:v1', '1.0.0')`)
	got := clitest.RunProgram(t, dir, "bindery", "catalog", "rm", "index.db", "etcd", "--dry-run")
	if got.Status != 0 || !strings.Contains(got.Stderr, "warning: dropped data that a catalog cannot represent") {
		t.Errorf("%+v", got)
	}
	if got := clitest.Done(t, dir, "bindery", "registry", "prune-stranded", "-d", "index.db",
		"--dry-run"); got != "removed bundle /lost.v1.0.0: example.com/lost:v1 (it is in no channel)\n" {
		t.Errorf("%q", got)
	}
	clitest.Done(t, dir, "bindery", "registry", "prune-stranded", "-d", "index.db")
	if got := channelsOf(t, dir, "index.db"); got != before {
		t.Errorf("%s, want %s", got, before)
	}
	start := clitest.Snapshot(t, dir)
	got = clitest.RunProgram(t, dir, "bindery", "registry", "prune-stranded", "-d", "index.db")
	if got.Status != 0 || !strings.Contains(got.Stderr, " is unchanged") || clitest.Snapshot(t, dir) != start {
		t.Errorf("without any: %+v", got)
	}
}

// An invalid package prevents rewriting a database, unless the edit removes it or it may be left out.
func TestBrokenPackageOfADatabase(t *testing.T) {
	dir := clitest.EditDir(t)
	alter(t, filepath.Join(dir, "index.db"),
		`UPDATE operatorbundle SET version = 'latest' WHERE name = 'silicom-sts-operator.v0.0.2'`)
	add := []string{"registry", "add", "-d", "index.db", "-b", "constraint-1", "--image-ref-template", clitest.RefTemplate}
	start := clitest.Snapshot(t, dir)
	got := clitest.RunProgram(t, dir, "bindery", add...)
	if got.Status != 1 || !strings.Contains(got.Stderr, "silicom-sts-operator") || !strings.Contains(got.Stderr,
		"hint: --keep-going") || clitest.Snapshot(t, dir) != start {
		t.Errorf("%+v", got)
	}
	clitest.CopyFile(t, filepath.Join(dir, "index.db"), filepath.Join(dir, "other.db"))
	if got := clitest.RunProgram(t, dir, "bindery", append(add, "--keep-going")...); got.Status != 4 ||
		!strings.Contains(got.Stderr, "skipped invalid packages (1: silicom-sts-operator)") {
		t.Errorf("%+v", got)
	}
	if got := channelsOf(t, dir, "index.db"); strings.Contains(got, "silicom") || !strings.Contains(got,
		"synth-constraint") {
		t.Error(got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "registry", "rm", "-d", "other.db", "-o",
		"silicom-sts-operator"); got.Status != 0 || strings.Contains(got.Stderr, "left out") {
		t.Errorf("%+v", got)
	}
	if got := channelsOf(t, dir, "other.db"); !strings.HasPrefix(got, "etcd/") || strings.Contains(got, "silicom") {
		t.Error(got)
	}
}

// Adding to an invalid package is refused even if invalid packages may be left out: the package would have the new
// bundle only.
func TestAdditionToABrokenPackage(t *testing.T) {
	dir := clitest.EditDir(t)
	alter(t, filepath.Join(dir, "index.db"),
		`UPDATE operatorbundle SET version = 'latest' WHERE name = 'etcdoperator.v0.9.2'`)
	start := clitest.Snapshot(t, dir)
	for _, where := range []string{"registry add -d index.db",
		"index add -f index.db --output-format fbc --cache none --server none --output oci:new -t acme/index:v1"} {
		for _, mode := range []string{"semver", "replaces"} {
			args := append(strings.Fields(where), "--keep-going", "--mode", mode, "-b", "etcd", "--image-ref-template",
				clitest.RefTemplate)
			got := clitest.RunProgram(t, dir, "bindery", args...)
			if got.Status != 1 || clitest.Snapshot(t, dir) != start || mode == "semver" &&
				(!strings.Contains(got.Stderr,
					`package "etcd" is broken, and cannot be changed before it is removed`) ||
					!strings.Contains(got.Stderr, `"catalog rm"`)) {
				t.Errorf("%s, mode %s: %+v", where, mode, got)
			}
		}
	}
}
