package catalog_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// channelsOf lists the heads of channels as PACKAGE/CHANNEL=HEAD.
func channelsOf(t *testing.T, dir, catalog string) string {
	t.Helper()
	var list []struct {
		Name, Package, Head string
	}
	text := clitest.Done(t, dir, "bindery", "list", "channels", catalog, "-o", "json")
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	var out []string
	for _, c := range list {
		out = append(out, c.Package+"/"+c.Name+"="+strings.TrimPrefix(strings.TrimPrefix(c.Head, "etcdoperator."),
			"silicom-sts-operator."))
	}
	return strings.Join(out, " ")
}

const before = "etcd/alpha=v0.6.1 etcd/clusterwide-alpha=v0.9.4-clusterwide etcd/singlenamespace-alpha=v0.9.4 " +
	"silicom-sts-operator/alpha=v0.0.6 silicom-sts-operator/beta=v0.0.2"

// Every command has the same effect on a database and on a directory, under both names, and none in a dry run.
func TestVerbsOnBothFormats(t *testing.T) {
	for _, c := range []struct {
		rule     string
		registry string // arguments with -d PATH; empty if opm has no such command
		catalog  string // arguments with CATALOG for the path
		heads    string
		dryRun   string // in the account
		explain  string // in the output of --explain; empty if there is nothing left to explain
	}{
		{
			rule:     "add",
			registry: "add -b etcd,constraint-2,constraint-1 --image-ref-template " + clitest.RefTemplate,
			catalog:  "add CATALOG etcd constraint-1 constraint-2 --image-ref-template " + clitest.RefTemplate,
			heads: "etcd/alpha=v0.6.1 etcd/clusterwide-alpha=v0.9.4-clusterwide etcd/singlenamespace-alpha=v0.9.5 " +
				"silicom-sts-operator/alpha=v0.0.6 silicom-sts-operator/beta=v0.0.2 " +
				"synth-constraint/alpha=synth-constraint.v0.2.0 synth-constraint/beta=synth-constraint.v0.2.0",
			dryRun:  "changed head etcd/singlenamespace-alpha: etcdoperator.v0.9.4 -> etcdoperator.v0.9.5",
			explain: "etcd/singlenamespace-alpha: the head is etcdoperator.v0.9.5 (",
		},
		{
			rule:     "add in mode semver",
			registry: "add -b etcd --mode SemVer --image-ref-template " + clitest.RefTemplate,
			catalog:  "add CATALOG etcd --mode semver --image-ref-template " + clitest.RefTemplate,
			heads: "etcd/alpha=v0.6.1 etcd/clusterwide-alpha=v0.9.4-clusterwide etcd/singlenamespace-alpha=v0.9.5 " +
				"silicom-sts-operator/alpha=v0.0.6 silicom-sts-operator/beta=v0.0.2",
			dryRun:  "added bundle etcd/etcdoperator.v0.9.5: registry.example.com/etcd:v0.9.5",
			explain: "etcd/singlenamespace-alpha: etcdoperator.v0.9.5 replaces etcdoperator.v0.9.4 (",
		},
		{
			rule:     "rm",
			registry: "rm -o etcd",
			catalog:  "rm CATALOG etcd",
			heads:    "silicom-sts-operator/alpha=v0.0.6 silicom-sts-operator/beta=v0.0.2",
			dryRun:   "removed package etcd",
		},
		{
			rule:     "prune",
			registry: "prune -p silicom-sts-operator",
			catalog:  "prune CATALOG --keep silicom-sts-operator",
			heads:    "silicom-sts-operator/alpha=v0.0.6 silicom-sts-operator/beta=v0.0.2",
			dryRun:   "removed package etcd",
		},
		{
			rule:     "deprecatetruncate",
			registry: "deprecatetruncate -b 127.0.0.1:5056/community/etcd:v0.9.2",
			catalog:  "deprecate CATALOG etcd/etcdoperator.v0.9.2 --truncate",
			heads:    before,
			dryRun:   "removed replace etcd/singlenamespace-alpha/etcdoperator.v0.9.2: etcdoperator.v0.9.0",
			explain:  "etcd/singlenamespace-alpha: the head is etcdoperator.v0.9.4 (",
		},
		{
			rule:    "promote",
			catalog: "promote CATALOG silicom-sts-operator.v0.0.6 --channel beta --default",
			heads: "etcd/alpha=v0.6.1 etcd/clusterwide-alpha=v0.9.4-clusterwide etcd/singlenamespace-alpha=v0.9.4 " +
				"silicom-sts-operator/alpha=v0.0.6 silicom-sts-operator/beta=v0.0.6",
			dryRun:  "changed default channel silicom-sts-operator: alpha -> beta (it was asked for)",
			explain: "silicom-sts-operator: the default channel is beta (it was asked for)",
		},
		{
			rule:    "filter",
			catalog: "filter CATALOG --package etcd:alpha --package silicom-sts-operator:alpha@>=0.0.2 --heads-only",
			heads:   "etcd/alpha=v0.6.1 silicom-sts-operator/alpha=v0.0.6",
			dryRun:  "removed bundle silicom-sts-operator/silicom-sts-operator.v0.0.1",
			explain: "etcd/alpha: the head is etcdoperator.v0.6.1 (",
		},
		{
			rule:    "merge",
			catalog: "merge CATALOG other",
			heads: "etcd/alpha=v0.6.1 etcd/clusterwide-alpha=v0.9.4-clusterwide etcd/singlenamespace-alpha=v0.9.5 " +
				"silicom-sts-operator/alpha=v0.0.6 silicom-sts-operator/beta=v0.0.2 " +
				"synth-constraint/alpha=synth-constraint.v0.1.0",
			dryRun:  "added package synth-constraint",
			explain: "synth-constraint: the default channel is alpha (",
		},
	} {
		for _, path := range []string{"index.db", "catalog"} {
			for name, line := range map[string]string{"registry": c.registry, "catalog": c.catalog} {
				if line == "" {
					continue
				}
				t.Run(c.rule+"/"+name+"/"+path, func(t *testing.T) {
					t.Parallel()
					dir := clitest.EditDir(t)
					if c.rule == "merge" {
						clitest.Done(t, dir, "bindery", "migrate", "index.db", "other")
						clitest.Done(t, dir, "bindery", "catalog", "add", "other", "etcd", "constraint-1",
							"--image-ref-template", clitest.RefTemplate)
					}
					args := append([]string{name}, strings.Fields(strings.ReplaceAll(line, "CATALOG", path))...)
					if name == "registry" {
						args = append(args, "-d", path)
					}
					start := clitest.Snapshot(t, dir)
					got := clitest.RunProgram(t, dir, "bindery", append(args, "--dry-run", "--explain")...)
					if got.Status != 0 || !strings.Contains(got.Stdout, c.dryRun) || !strings.Contains(got.Stdout,
						c.explain) {
						t.Errorf("dry run: %+v, want %q and %q", got, c.dryRun, c.explain)
					}
					if now := clitest.Snapshot(t, dir); now != start {
						t.Errorf("a dry run has changed something: before\n%s\nafter\n%s", start, now)
					}
					if got := clitest.Done(t, dir, "bindery", args...); got != "" {
						t.Errorf("standard output has %q", got)
					}
					if got := channelsOf(t, dir, path); got != c.heads {
						t.Errorf("got  %s\nwant %s", got, c.heads)
					}
					if path == "catalog" {
						clitest.Done(t, dir, "bindery", "validate", path)
					}
				})
			}
		}
	}
}

// An impossible edit is reported completely, with opm's exit status, and changes nothing. With --permissive the valid
// part is applied.
func TestVerbErrors(t *testing.T) {
	for _, c := range []struct {
		rule   string
		args   string // PATH is the database or the directory
		status int
		stderr []string
		left   string // the change with --permissive; empty if there is no such flag
	}{
		{
			rule: "an image that is there", args: "add -d PATH -b same,constraint-1", status: 2,
			stderr: []string{"Bundle 127.0.0.1:5056/community/etcd:v0.9.4 already exists",
				"Bundle already added that provides package and csv"},
			left: "synth-constraint/alpha=synth-constraint.v0.1.0",
		},
		{
			rule: "another image of a bundle that is there", args: "add -d PATH -b ../same,constraint-1", status: 3,
			stderr: []string{"Bundle already added that provides package and csv", "hint: --overwrite-latest"},
			left:   "synth-constraint/alpha=synth-constraint.v0.1.0",
		},
		{
			rule: "bundles that cannot be read", args: "add -d PATH -b nosuch/one,constraint-1,catalog,index.db",
			status: 1,
			stderr: []string{`"nosuch/one"`, `"catalog": it is a catalog directory, not a bundle`,
				`"index.db": it is a database, not a bundle`},
			left: "synth-constraint/alpha=synth-constraint.v0.1.0",
		},
		{
			rule: "packages that are not there", args: "rm -d PATH -o nosuch,etcd,other", status: 1,
			stderr: []string{"no package found for packagename nosuch", "no package found for packagename other",
				"hint: --permissive"},
			left: "silicom-sts-operator/alpha=v0.0.6",
		},
		{
			rule:   "bundles that are not there",
			args:   "deprecatetruncate -d PATH -b example.com/a:1,127.0.0.1:5056/community/etcd:v0.9.2,example.com/b:1",
			status: 1,
			stderr: []string{"target bundlepaths for deprecation missing from registry: [example.com/a:1 " +
				"example.com/b:1]"},
		},
		{
			rule: "the head of the default channel", args: "deprecatetruncate -d PATH -b etcd/etcdoperator.v0.9.4",
			status: 1,
			stderr: []string{"Bundle deprecation causing default channel removal", "hint: --allow-package-removal"},
		},
	} {
		for _, path := range []string{"index.db", "catalog"} {
			t.Run(c.rule+"/"+path, func(t *testing.T) {
				t.Parallel()
				dir := filepath.Join(clitest.EditDir(t), "work")
				if err := os.Mkdir(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				for _, name := range []string{"index.db", "catalog", "constraint-1"} {
					if err := os.Rename(filepath.Join(dir, "..", name), filepath.Join(dir, name)); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.CopyFS(filepath.Join(dir, "../same"),
					os.DirFS("../../../testdata/bundles/etcd/0.9.4")); err != nil {
					t.Fatal(err)
				}
				line := strings.ReplaceAll(c.args, "PATH", path)
				if strings.Contains(line, "same,") && !strings.Contains(line, "../same") {
					line = strings.Replace(line, "same,", "../same,",
						1) + " --image-ref-template 127.0.0.1:5056/community/{{.Package}}:v{{.Version}}"
				} else if strings.HasPrefix(line, "add") {
					line += " --image-ref-template " + clitest.RefTemplate
				}
				args := append([]string{"registry"}, strings.Fields(line)...)
				start := clitest.Snapshot(t, dir)
				got := clitest.RunProgram(t, dir, "bindery", args...)
				if got.Status != c.status || got.Stdout != "" {
					t.Errorf("%+v, want status %d", got, c.status)
				}
				for _, text := range c.stderr {
					if !strings.Contains(got.Stderr, text) {
						t.Errorf("no %q in\n%s", text, got.Stderr)
					}
				}
				if now := clitest.Snapshot(t, dir); now != start {
					t.Errorf("before\n%s\nafter\n%s", start, now)
				}
				if c.left == "" {
					return
				}
				got = clitest.RunProgram(t, dir, "bindery", append(args, "--permissive")...)
				if got.Status != 0 || !strings.Contains(got.Stderr, "warning: ") {
					t.Errorf("permissively: %+v", got)
				}
				if heads := channelsOf(t, dir, path); !strings.Contains(heads, c.left) {
					t.Errorf("permissively: %s, want %s", heads, c.left)
				}
			})
		}
	}
}

// Bundles can be read from every transport; a batch may mix them.
func TestBundlesFromEverywhere(t *testing.T) {
	dir := clitest.EditDir(t)
	registry := testregistry.New(t)
	name := registry.Host() + "/acme/etcd:v0.9.5"
	clitest.Done(t, dir, "bindery", "build", "bundle", "etcd", "-t", name, "--push", "--use-http", "--output", "oci:layout:v1",
		"--output", "oci-archive:etcd.tar:v1", "--output", "docker-archive:etcd.docker.tar")
	flags := []string{"--use-http", "--no-cache", "--image-ref-template", clitest.RefTemplate}
	for _, ref := range []string{name, "docker://" + name, "oci:layout:v1", "oci-archive:etcd.tar:v1",
		"docker-archive:etcd.docker.tar", "etcd"} {
		for _, path := range []string{"index.db", "catalog"} {
			copyOf := "copy-" + path
			if path == "index.db" {
				clitest.CopyFile(t, filepath.Join(dir, path), filepath.Join(dir, copyOf))
			} else if err := os.CopyFS(filepath.Join(dir, copyOf), os.DirFS(filepath.Join(dir, path))); err != nil {
				t.Fatal(err)
			}
			clitest.Done(t, dir, "bindery", append([]string{"catalog", "add", copyOf, ref, "constraint-1"}, flags...)...)
			want := "registry.example.com/etcd:v0.9.5"
			if strings.Contains(ref, "acme/etcd") {
				want = name
			}
			if got := clitest.Done(t, dir, "bindery", "list", "bundles", copyOf, "etcd"); !strings.Contains(got, want) {
				t.Errorf("%s of %s: no %q in\n%s", path, ref, want, got)
			}
			if err := os.RemoveAll(filepath.Join(dir, copyOf)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
