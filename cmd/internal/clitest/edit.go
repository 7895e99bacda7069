package clitest

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// WriteFile creates a file.
func WriteFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// NewBundle creates the directory of the bundle etcdoperator.v0.9.5, which replaces etcdoperator.v0.9.4, from the
// latter's.
func NewBundle(t *testing.T, dir string) { nextBundle(t, dir, "0.9.5", "0.9.4") }

func nextBundle(t *testing.T, dir, version, replaces string) {
	t.Helper()
	const from = "../../../testdata/bundles/etcd/0.9.4"
	if err := os.CopyFS(dir, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	csv := filepath.Join(dir, "manifests", "etcdoperator.v0.9.4.clusterserviceversion.yaml")
	text := ReadFile(t, csv)
	for _, change := range [][2]string{
		{"  name: etcdoperator.v0.9.4\n", "  name: etcdoperator.v" + version + "\n"},
		{"  version: 0.9.4\n", "  version: " + version + "\n"},
		{"  replaces: etcdoperator.v0.9.2\n", "  replaces: etcdoperator.v" + replaces + "\n"},
	} {
		if !strings.Contains(text, change[0]) {
			t.Fatalf("no %q in %s", change[0], csv)
		}
		text = strings.Replace(text, change[0], change[1], 1)
	}
	WriteFile(t, csv, text)
}

// EditDir returns a directory with the database index.db, the same catalog in the directory catalog, and the bundles
// etcd (etcdoperator.v0.9.5) and constraint-1, constraint-2 of a package that they do not have.
func EditDir(t *testing.T) string {
	t.Helper()
	editOnce.Do(func() {
		dir := filepath.Join(BinDir, "edit")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "index.db"))
		Done(t, dir, "bindery", "migrate", "index.db", "catalog", "-o", "yaml")
		NewBundle(t, filepath.Join(dir, "etcd"))
		for version, name := range map[string]string{"0.1.0": "constraint-1", "0.2.0": "constraint-2"} {
			if err := os.CopyFS(filepath.Join(dir, name),
				os.DirFS("../../../testdata/bundles/synth-constraint/"+version)); err != nil {
				t.Fatal(err)
			}
		}
	})
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(BinDir, "edit"))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// editOnce guards the creation of the template that editDir copies.
var editOnce sync.Once

const RefTemplate = "registry.example.com/{{.Package}}:v{{.Version}}"
