package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// twoPackages writes a catalog of the packages "a" and "b"; a bundle of "b" cannot be parsed. Each has a separate
// directory, or both are in one file.
func twoPackages(t *testing.T, dir string, oneFile bool) {
	t.Helper()
	for _, pkg := range []string{"a", "b"} {
		text := "---\nschema: olm.package\nname: P\ndefaultChannel: c\n---\nschema: olm.channel\npackage: P\nname: " +
			"c\nentries:\n- name: P.v1\n" +
			"---\nschema: olm.bundle\nname: P.v1\npackage: P\nimage: q.io/x/P:v1\nproperties:\n- type: " +
			"olm.package\n  value:\n    packageName: P\n    version: 1.0.0\n"
		if pkg == "b" {
			text += "- {{\n"
		}
		path := filepath.Join(dir, pkg, "catalog.yaml")
		if oneFile {
			path = filepath.Join(dir, "catalog.yaml")
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(strings.ReplaceAll(text, "P", pkg)); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Commands about one package do not parse bundles of others, so that undecodable ones do not matter.
func TestOnePackageIsReadAlone(t *testing.T) {
	for layout, oneFile := range map[string]bool{"directories": false, "one file": true} {
		t.Run(layout, func(t *testing.T) {
			dir := t.TempDir()
			twoPackages(t, filepath.Join(dir, "catalog"), oneFile)
			for _, c := range []struct {
				program, args string
				status        int
				want          string // in the answer or the error
			}{
				{"bindery", "list channels catalog a", 0, "a        c        a.v1"},
				{"bindery", "list bundles catalog a", 0, "q.io/x/a:v1"},
				{"bindery", "list images catalog a", 0, "q.io/x/a:v1\n"},
				{"bindery", "graph catalog -p a -o dot", 0, "a.v1"},
				{"bindery", "catalog filter catalog -p a --dry-run", 0, "removed bundle b/b.v1: q.io/x/b:v1\n"},
				{"bindery", "catalog filter catalog -p a --to filtered", 0, ""},
				{"bindery", "catalog rm catalog b --dry-run", 0, "removed bundle b/b.v1: q.io/x/b:v1\n"},
				{"bindery", "list bundles filtered", 0, "q.io/x/a:v1"},
				{"bindery", "list bundles catalog", 1, "catalog.yaml:"},
				{"bindery", "list bundles catalog b", 1, "catalog.yaml:"},
				{"bindery", "list bundles catalog none", 1, "catalog.yaml:"},
				{"bindery", "graph catalog -o dot", 1, "catalog.yaml:"},
				{"opm", "alpha list bundles catalog a", 1, "did not find expected"}, // opm parses everything
				{"bindery", "catalog rm catalog b", 0, ""},
				{"bindery", "list bundles catalog", 0, "q.io/x/a:v1"},
				{"bindery", "list bundles catalog none", 1, `package "none" not found`},
			} {
				got := clitest.RunProgram(t, dir, c.program, strings.Fields(c.args)...)
				if got.Status != c.status || !strings.Contains(got.Stdout+got.Stderr, c.want) ||
					strings.Contains(got.Stdout, "b.v1") != strings.Contains(c.want, "b.v1") {
					t.Errorf("%s %s: %+v", c.program, c.args, got)
				}
			}
		})
	}
}
