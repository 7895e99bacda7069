package catalog_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
)

// A selection file selects the same as the flags.
func TestSelectionFile(t *testing.T) {
	dir := clitest.EditDir(t)
	for _, c := range []struct{ rule, file, flags string }{
		{"packages", "packages: [{name: etcd}, {name: silicom-sts-operator}]", "-p etcd -p silicom-sts-operator"},
		{"versions of a package", "packages: [{name: etcd, versions: '>=0.9.2 <0.9.4'}]", "-p etcd@>=0.9.2·<0.9.4"},
		{"the lowest and the highest version", "packages:\n- name: etcd\n  minVersion: 0.9.2\n  maxVersion: 0.9.4\n",
			"-p etcd@>=0.9.2·<=0.9.4"},
		{"channels with versions of their own",
			"packages:\n- name: etcd\n  channels:\n  - name: singlenamespace-alpha\n    minVersion: 0.9.2\n  - name: " +
				"alpha\n", "-p etcd:singlenamespace-alpha@>=0.9.2,etcd:alpha"},
		{"heads and another default channel",
			`{"packages": [{"name": "etcd", "headsOnly": true, "defaultChannel": "alpha"}]}`,
			"-p etcd --heads-only --default-channel etcd=alpha"},
	} {
		t.Run(c.rule, func(t *testing.T) {
			clitest.WriteFile(t, filepath.Join(dir, "selection.yaml"), c.file)
			var args []string
			for _, arg := range strings.Fields(c.flags) {
				args = append(args, strings.ReplaceAll(arg, "·", " "))
			}
			byFlags := clitest.Done(t, dir, "bindery",
				append([]string{"catalog", "filter", "catalog", "--dry-run", "--explain"}, args...)...)
			byFile := clitest.Done(t, dir, "bindery", "catalog", "filter", "catalog", "--dry-run", "--explain", "-f",
				"selection.yaml")
			if byFile != byFlags || byFile == "" {
				t.Errorf("by file\n%s\nby flags\n%s", byFile, byFlags)
			}
		})
	}
	for _, c := range []struct{ file, stderr string }{
		{"", "it is empty"},
		{"packages: []", "no packages: expected"},
		{"package: etcd", `unknown field "package"`},
		{"packages: [{name: etcd, min: 1}]", `unknown field "min"`},
		{"packages: [{}, {name: etcd, channels: [{}]}]",
			"packages[0] has no name\n  --selection selection.yaml: packages[1].channels[0] has no name"},
		{"packages: [{name: etcd, versions: '1', minVersion: 1.0.0}]", "versions cannot be combined with minVersion"},
		{"packages: [{name: etcd, minVersion: '9.9.9 || >=0.0.0'}]",
			`packages[0] (etcd): minVersion "9.9.9 || >=0.0.0" is no version`},
		{"packages: [{name: etcd, channels: [{name: alpha, maxVersion: v1.0.0}]}]",
			`packages[0].channels[0] (alpha): maxVersion "v1.0.0" is no version`},
		{"packages: [{name: etcd}]\n---\nmore: 1\n", "more than one document"},
		{"packages: [", "selection.yaml"},
	} {
		clitest.WriteFile(t, filepath.Join(dir, "selection.yaml"), c.file)
		if got := clitest.RunProgram(t, dir, "bindery", "catalog", "filter", "catalog", "-f",
			"selection.yaml"); got.Status != 1 || !strings.Contains(got.Stderr, c.stderr) {
			t.Errorf("%q: %+v, want %q", c.file, got, c.stderr)
		}
	}
}

// Filtering to another directory gives the same result as filtering in place, for each kind of catalog, and does not
// change the source.
func TestFilterTo(t *testing.T) {
	dir := clitest.EditDir(t)
	clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "-t", "acme:v1", "--server", "none", "--cache", "none",
		"--output", "oci:image:v1")
	start := clitest.Snapshot(t, filepath.Join(dir, "catalog"))
	args := []string{"-p", "etcd@>=0.9.0", "--heads-only"}
	want := ""
	for i, from := range []string{"catalog", "index.db", "oci:image:v1"} {
		to := "filtered-" + string(rune('a'+i))
		clitest.Done(t, dir, "bindery",
			append([]string{"catalog", "filter", from, "--to", to, "--catalog-format", "yaml"}, args...)...)
		got := clitest.Done(t, dir, "bindery", "render", to)
		if want == "" {
			want = got
		}
		if got != want {
			t.Errorf("%s gives another catalog", from)
		}
		if _, err := os.Stat(filepath.Join(dir, to, "etcd", "catalog.yaml")); err != nil {
			t.Error(err)
		}
	}
	if now := clitest.Snapshot(t, filepath.Join(dir, "catalog")); now != start {
		t.Errorf("before\n%s\nafter\n%s", start, now)
	}
	clitest.Done(t, dir, "bindery", append([]string{"catalog", "filter", "catalog"}, args...)...)
	if got := clitest.Done(t, dir, "bindery", "render", "catalog"); got != want {
		t.Error("the catalog that was filtered in place is another one")
	}
	got := clitest.RunProgram(t, dir, "bindery",
		append([]string{"catalog", "filter", "index.db", "--to", "catalog"}, args...)...)
	if got.Status != 1 || !strings.Contains(got.Stderr, "must be empty") {
		t.Errorf("to a directory that is there: %+v", got)
	}
}

// A deprecation can be set with a message and removed; truncation can be combined with a message.
func TestDeprecate(t *testing.T) {
	dir := clitest.EditDir(t)
	run := func(args ...string) {
		t.Helper()
		clitest.Done(t, dir, "bindery", append([]string{"catalog", "deprecate", "catalog"}, args...)...)
	}
	has := func(text string, want bool) {
		t.Helper()
		if got := strings.Contains(clitest.Done(t, dir, "bindery", "render", "catalog", "-o", "ndjson"), text); got != want {
			t.Errorf("%q is there: %v, want %v", text, got, want)
		}
	}
	run("etcdoperator.v0.9.0", "127.0.0.1:5056/community/etcd:v0.9.2", "--channel", "etcd/alpha", "--package",
		"silicom-sts-operator", "-m", "leave it, soon")
	for _, ref := range []string{`{"reference":{"schema":"olm.bundle","name":"etcdoperator.v0.9.0"},"message":"leave it, soon"}`, `"name":"etcdoperator.v0.9.2"},"message":"leave it, soon"`,
		`{"reference":{"schema":"olm.channel","name":"alpha"},"message":"leave it, soon"}`,
		`{"reference":{"schema":"olm.package"},"message":"leave it, soon"}`} {
		has(ref, true)
	}
	run("etcdoperator.v0.9.0", "etcdoperator.v0.9.2", "--channel", "etcd/alpha", "--package", "silicom-sts-operator",
		"--undo")
	has("leave it", false)
	run("etcd/etcdoperator.v0.9.2", "--truncate", "-m", "upgrade")
	has(`"name":"etcdoperator.v0.9.2"},"message":"upgrade"`, true)
	has(`"replaces":"etcdoperator.v0.9.0"`, true) // in the other channel
	text := clitest.Done(t, dir, "bindery", "catalog", "deprecate", "index.db", "etcd/etcdoperator.v0.9.2", "--truncate", "-m",
		"upgrade", "--lossy", "--dry-run")
	if strings.Count(text, "deprecation etcd/etcdoperator.v0.9.2") != 1 || !strings.Contains(text, ": upgrade") {
		t.Errorf("the account of both steps:\n%s", text)
	}
}

// A missing catalog is created in the form that its name or a flag implies.
func TestCreate(t *testing.T) {
	dir := clitest.EditDir(t)
	add := func(args ...string) {
		t.Helper()
		clitest.Done(t, dir, "bindery", append(args, "--image-ref-template", clitest.RefTemplate)...)
	}
	add("catalog", "add", "new", "constraint-1", "--create", "--catalog-format", "yaml")
	add("catalog", "add", "new.db", "constraint-1", "--create")
	add("registry", "add", "-d", "opm.db", "-b", "constraint-1")
	add("registry", "add", "-d", "dir/", "-b", "constraint-1")
	clitest.Done(t, dir, "bindery", "catalog", "merge", "merged", "new.db", "index.db", "--create")
	for path, isDir := range map[string]bool{"new": true, "new.db": false, "opm.db": false, "dir": true,
		"merged": true} {
		info, err := os.Stat(filepath.Join(dir, path))
		if err != nil || info.IsDir() != isDir {
			t.Errorf("%s: %v, %v", path, info, err)
			continue
		}
		if heads := channelsOf(t, dir, path); !strings.HasSuffix(heads,
			"synth-constraint/alpha=synth-constraint.v0.1.0") {
			t.Errorf("%s has %s", path, heads)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "new", "synth-constraint", "catalog.yaml")); err != nil {
		t.Error(err)
	}
}

// Added bundles get the migration level of the catalog's bundles, unless a flag sets another one.
func TestAddTakesTheFormOfTheCatalog(t *testing.T) {
	dir := clitest.EditDir(t)
	clitest.Done(t, dir, "bindery", "migrate", "index.db", "slim", "--migrate-level", "bundle-object-to-csv-metadata")
	for _, c := range []struct {
		catalog, level string
		metadata       bool
	}{{"slim", "auto", true}, {"catalog", "auto", false}, {"catalog", "bundle-object-to-csv-metadata", true},
		{"slim", "none", false}} {
		copyOf := c.catalog + "-" + c.level
		if err := os.CopyFS(filepath.Join(dir, copyOf), os.DirFS(filepath.Join(dir, c.catalog))); err != nil {
			t.Fatal(err)
		}
		clitest.Done(t, dir, "bindery", "catalog", "add", copyOf, "constraint-1", "--image-ref-template", clitest.RefTemplate,
			"--migrate-level", c.level)
		text := clitest.Done(t, dir, "bindery", "render", copyOf, "-o", "ndjson")
		text = text[strings.Index(text, `"name":"synth-constraint"`):]
		if strings.Contains(text, "olm.csv.metadata") != c.metadata || strings.Contains(text,
			"olm.bundle.object") == c.metadata {
			t.Errorf("%s with level %s: metadata should be %v", c.catalog, c.level, c.metadata)
		}
	}
}
