package read_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// Drawings in opm's format, under both names of the program.
func TestRenderGraph(t *testing.T) {
	for _, c := range []struct{ args, golden string }{
		{"alpha render-graph small.db", "../../../testdata/indexes/golden/small/render-graph.mmd"},
		// a repeated reference counts once
		{"alpha render-graph small.db small.db", "../../../testdata/indexes/golden/small/render-graph.mmd"},
		{"alpha render-graph small.db --draw-v0-semantics", "../../../testdata/indexes/golden/small/render-graph-v0.mmd"},
		{"alpha render-graph small.db -p etcd", "../clitest/testdata/opm/alpha-render-graph-pkg.mmd"},
		{"alpha render-graph small.db --package-name silicom-sts-operator --minimum-edge silicom-sts-operator.v0.0.3",
			"../clitest/testdata/opm/alpha-render-graph-min.mmd"},
		{"alpha render-graph cat", "../../../testdata/oracle/golden-fbc-cases/ok-base/graph.mmd"},
	} {
		for _, name := range []string{"bindery", "opm"} {
			t.Run(name+" "+c.args, func(t *testing.T) {
				got := clitest.RunProgram(t, clitest.WorkDir(t), name, strings.Fields(c.args)...)
				if want := clitest.ReadFile(t, c.golden); got.Status != 0 || got.Stdout != want || got.Stderr != "" {
					t.Errorf("status %d, standard error %q, got\n%s\nwant\n%s", got.Status, got.Stderr, got.Stdout,
						want)
				}
			})
		}
	}
}

func TestGraphErrors(t *testing.T) {
	for _, c := range []struct {
		name, args, stderr string
	}{
		{"bindery", "alpha render-graph", "requires at least 1 arg(s), only received 0"},
		{"opm", "alpha render-graph", "Error: requires at least 1 arg(s), only received 0"},
		{"opm", "alpha render-graph small.db --minimum-edge x", ` unknown minimum edge name: "x"`},
		{"bindery", "graph small.db -p nosuch", `error: package "nosuch" not found`},
		{"bindery", "graph small.db -c nosuch", `error: channel "nosuch" not found`},
		{"bindery", "graph small.db -o png", `invalid --output value "png", expected (svg|html|mermaid|dot)`},
		{"bindery", "graph nosuch", `render reference "nosuch"`},
		{"bindery", "graph small.db --out nosuch/x.svg", "error: --to: "},
		{"bindery", "list images small.db --by size", `invalid --by value "size"`},
		{"bindery", "list images small.db nosuch", `package "nosuch" not found`},
		{"bindery", "list images small.db --channel nosuch", `channel "nosuch" not found`},
		{"bindery", "diff small.db", "accepts 2 arg(s), received 1"},
		{"bindery", "diff small.db nosuch", `render reference "nosuch"`},
		{"bindery", "diff small.db icon.txt", "unsupported file type"},
		{"bindery", "diff small.db cat --only nosuch", `invalid --only value "nosuch"`},
		{"bindery", "diff small.db cat --color blue", `invalid --color value "blue"`},
		{"bindery", "diff small.db cat -o yaml", `invalid --output value "yaml"`},
	} {
		t.Run(c.name+" "+c.args, func(t *testing.T) {
			dir := clitest.WorkDir(t)
			before := clitest.Snapshot(t, dir)
			got := clitest.RunProgram(t, dir, c.name, strings.Fields(c.args)...)
			if got.Status != 1 || got.Stdout != "" || !strings.Contains(got.Stderr, c.stderr) {
				t.Errorf("%+v", got)
			}
			if after := clitest.Snapshot(t, dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// The extension of the file selects the format; after a failure the file is unchanged.
func TestGraphFile(t *testing.T) {
	dir := clitest.WorkDir(t)
	for name, start := range map[string]string{"g.svg": "<svg ", "g.html": "<!DOCTYPE html>", "g.dot": "digraph ",
		"g.mmd": "graph LR", "g.txt": "<svg "} {
		got := clitest.RunProgram(t, dir, "bindery", "graph", "small.db", "--out", name)
		if got.Status != 0 || got.Stdout != "" || !strings.HasPrefix(clitest.ReadFile(t, filepath.Join(dir, name)), start) {
			t.Errorf("%s: %+v", name, got)
		}
		if direct := clitest.RunProgram(t, dir, "bindery", "graph", "small.db", "-o",
			formatOf(name)); direct.Stdout != clitest.ReadFile(t, filepath.Join(dir, name)) {
			t.Errorf("%s: standard output is another drawing", name)
		}
	}
	before := clitest.Snapshot(t, dir)
	if got := clitest.RunProgram(t, dir, "bindery", "graph", "small.db", "-p", "nosuch", "--out", "g.svg"); got.Status != 1 {
		t.Errorf("%+v", got)
	}
	if after := clitest.Snapshot(t, dir); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
}

func formatOf(name string) string {
	switch filepath.Ext(name) {
	case ".mmd":
		return "mermaid"
	case ".txt":
		return "svg"
	}
	return filepath.Ext(name)[1:]
}

func TestListImages(t *testing.T) {
	dir := clitest.WorkDir(t)
	all := clitest.RunProgram(t, dir, "bindery", "list", "images", "small.db")
	lines := strings.Split(strings.TrimSpace(all.Stdout), "\n")
	if all.Status != 0 || len(lines) < 5 {
		t.Fatalf("%+v", all)
	}
	for i, l := range lines {
		if i > 0 && lines[i-1] >= l || strings.ContainsAny(l, " \t") {
			t.Errorf("line %d: %q after %q", i, l, lines[max(0, i-1)])
		}
	}
	heads := clitest.RunProgram(t, dir, "bindery", "list", "images", "small.db", "etcd", "--heads-only", "--channel", "alpha",
		"-o", "json")
	var rows []struct {
		Image    string
		Kinds    []string
		Channels []struct{ Package, Name string }
	}
	if err := json.Unmarshal([]byte(heads.Stdout), &rows); err != nil || len(rows) == 0 {
		t.Fatal(err, heads)
	}
	for _, r := range rows {
		if len(r.Channels) != 1 || r.Channels[0].Package != "etcd" || r.Channels[0].Name != "alpha" ||
			!strings.Contains(all.Stdout, r.Image+"\n") {
			t.Errorf("%+v", r)
		}
	}
	table := clitest.RunProgram(t, dir, "bindery", "list", "images", "small.db", "--by", "channel")
	if !strings.HasPrefix(table.Stdout, "PACKAGE ") || !strings.Contains(table.Stdout, "singlenamespace-alpha") {
		t.Errorf("%+v", table)
	}
}

// Exit status 0: equal; 1 with output: different; 1 without output: an error.
func TestDiff(t *testing.T) {
	dir := clitest.WorkDir(t)
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "out"); got.Status != 0 {
		t.Fatal(got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "diff", "small.db", "out"); got != (clitest.Result{}) {
		t.Errorf("a database and its catalog: %+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "out", "-t", "catalog:v1", "--output",
		"oci:image:v1"); got.Status != 0 {
		t.Fatal(got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "diff", "out", "oci:image:v1", "-q"); got != (clitest.Result{}) {
		t.Errorf("a catalog and its image: %+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", "small.db", "small", "--migrate-level",
		"bundle-object-to-csv-metadata"); got.Status != 0 {
		t.Fatal(got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "diff", "small.db", "small"); got.Status != 1 ||
		!strings.Contains(got.Stdout, "+ property olm.csv.metadata") {
		t.Errorf("a migration level is a difference: %+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "diff", "small.db", "small", "--migrate"); got != (clitest.Result{}) {
		t.Errorf("after migration: %+v", got)
	}
	file := filepath.Join(dir, "out", "etcd", "catalog.json")
	edited := strings.Replace(clitest.ReadFile(t, file), `"defaultChannel": "singlenamespace-alpha"`,
		`"defaultChannel": "alpha"`, 1)
	if err := os.WriteFile(file, []byte(edited), 0o666); err != nil {
		t.Fatal(err)
	}
	const want = "~ package etcd\n  ~ default channel singlenamespace-alpha -> alpha\n"
	if got := clitest.RunProgram(t, dir, "bindery", "diff", "small.db", "out"); got != (clitest.Result{Stdout: want, Status: 1}) {
		t.Errorf("%+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "diff", "small.db", "out", "--color",
		"always"); !strings.Contains(got.Stdout, "\x1b[33m~ package etcd\x1b[0m\n") {
		t.Errorf("%+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "diff", "small.db", "out", "--only", "heads"); got != (clitest.Result{}) {
		t.Errorf("another section: %+v", got)
	}
	got := clitest.RunProgram(t, dir, "bindery", "diff", "small.db", "out", "-o", "json")
	var report struct {
		Same     bool
		Packages []struct{ Name string }
	}
	if err := json.Unmarshal([]byte(got.Stdout), &report); err != nil || got.Status != 1 || report.Same ||
		len(report.Packages) != 1 || report.Packages[0].Name != "etcd" {
		t.Errorf("%v %+v", err, got)
	}
}
