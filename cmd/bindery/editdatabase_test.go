package main

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
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
	dir := editDir(t)
	index := filepath.Join(dir, "index.db")
	alter(t, index,
		`INSERT INTO operatorbundle (name, bundlepath, version) VALUES ('lost.v1.0.0', 'example.com/lost:v1', '1.0.0')`)
	got := runProgram(t, dir, "bindery", "catalog", "rm", "index.db", "etcd", "--dry-run")
	if got.status != 0 || !strings.Contains(got.stderr, "warning: dropped data that a catalog cannot represent") {
		t.Errorf("%+v", got)
	}
	if got := done(t, dir, "bindery", "registry", "prune-stranded", "-d", "index.db",
		"--dry-run"); got != "removed bundle /lost.v1.0.0: example.com/lost:v1 (it is in no channel)\n" {
		t.Errorf("%q", got)
	}
	done(t, dir, "bindery", "registry", "prune-stranded", "-d", "index.db")
	if got := channelsOf(t, dir, "index.db"); got != before {
		t.Errorf("%s, want %s", got, before)
	}
	start := snapshot(t, dir)
	got = runProgram(t, dir, "bindery", "registry", "prune-stranded", "-d", "index.db")
	if got.status != 0 || !strings.Contains(got.stderr, " is unchanged") || snapshot(t, dir) != start {
		t.Errorf("without any: %+v", got)
	}
}

// An invalid package prevents rewriting a database, unless the edit removes it or it may be left out.
func TestBrokenPackageOfADatabase(t *testing.T) {
	dir := editDir(t)
	alter(t, filepath.Join(dir, "index.db"),
		`UPDATE operatorbundle SET version = 'latest' WHERE name = 'silicom-sts-operator.v0.0.2'`)
	add := []string{"registry", "add", "-d", "index.db", "-b", "constraint-1", "--image-ref-template", refTemplate}
	start := snapshot(t, dir)
	got := runProgram(t, dir, "bindery", add...)
	if got.status != 1 || !strings.Contains(got.stderr, "silicom-sts-operator") || !strings.Contains(got.stderr,
		"hint: --keep-going") || snapshot(t, dir) != start {
		t.Errorf("%+v", got)
	}
	copyFile(t, filepath.Join(dir, "index.db"), filepath.Join(dir, "other.db"))
	if got := runProgram(t, dir, "bindery", append(add, "--keep-going")...); got.status != 4 ||
		!strings.Contains(got.stderr, "skipped invalid packages (1: silicom-sts-operator)") {
		t.Errorf("%+v", got)
	}
	if got := channelsOf(t, dir, "index.db"); strings.Contains(got, "silicom") || !strings.Contains(got,
		"synth-constraint") {
		t.Error(got)
	}
	if got := runProgram(t, dir, "bindery", "registry", "rm", "-d", "other.db", "-o",
		"silicom-sts-operator"); got.status != 0 || strings.Contains(got.stderr, "left out") {
		t.Errorf("%+v", got)
	}
	if got := channelsOf(t, dir, "other.db"); !strings.HasPrefix(got, "etcd/") || strings.Contains(got, "silicom") {
		t.Error(got)
	}
}

// Adding to an invalid package is refused even if invalid packages may be left out: the package would have the new
// bundle only.
func TestAdditionToABrokenPackage(t *testing.T) {
	dir := editDir(t)
	alter(t, filepath.Join(dir, "index.db"),
		`UPDATE operatorbundle SET version = 'latest' WHERE name = 'etcdoperator.v0.9.2'`)
	start := snapshot(t, dir)
	for _, where := range []string{"registry add -d index.db",
		"index add -f index.db --output-format fbc --cache none --server none --output oci:new -t acme/index:v1"} {
		for _, mode := range []string{"semver", "replaces"} {
			args := append(strings.Fields(where), "--keep-going", "--mode", mode, "-b", "etcd", "--image-ref-template",
				refTemplate)
			got := runProgram(t, dir, "bindery", args...)
			if got.status != 1 || snapshot(t, dir) != start || mode == "semver" &&
				(!strings.Contains(got.stderr,
					`package "etcd" is broken, and cannot be changed before it is removed`) ||
					!strings.Contains(got.stderr, `"catalog rm"`)) {
				t.Errorf("%s, mode %s: %+v", where, mode, got)
			}
		}
	}
}

// A damaged database, or a file that is not one, gives an error with its class and stays unchanged.
func TestEditsOfWhatIsNoDatabase(t *testing.T) {
	dir := editDir(t)
	writeFile(t, filepath.Join(dir, "text.db"), "no database")
	writeFile(t, filepath.Join(dir, "short.db"), readFile(t, filepath.Join(dir, "index.db"))[:4096])
	start := snapshot(t, dir)
	for path, class := range map[string]string{"text.db": `"class":3`, "short.db": `"class":5`} {
		got := runProgram(t, dir, "bindery", "catalog", "rm", path, "etcd", "--error-format", "json")
		if got.status != 1 || !strings.Contains(got.stderr, class) {
			t.Errorf("%s: %+v, want %s", path, got, class)
		}
	}
	if now := snapshot(t, dir); now != start {
		t.Errorf("before\n%s\nafter\n%s", start, now)
	}
}
