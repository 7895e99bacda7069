package index_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// The recorded database commands give opm's exit status and the stable parts of its error. If opm succeeded, the
// resulting database lists the same content as opm's.
func TestRegistryAsOpm(t *testing.T) {
	const host = testregistry.RecordedHost
	all := recorded.All(t)
	registry := testregistry.Recorded(t)
	conf := registry.RegistriesConf(t, host)
	kairos := recordedImages("community/kairos-operator", "v2.0.1", "v2.1.0", "v2.1.1", "v2.2.0")
	subs := recordedImages("synth/synth-subs", "v1.0.0", "v1.1.0", "v1.1.0-0.1664.p", "v1.2.0", "v1.2.0-0.1700.p")
	for _, c := range []struct {
		name   string // of the recorded database, and of the file with opm's standard error
		stderr string
		from   string
		args   string
		status int
		form   string   // the beginning of the error
		parts  []string // parts of opm's error
	}{
		{name: "readd", stderr: "add-readd.db.stderr", from: "small",
			args: "add -b " + recordedImages("community/etcd", "v0.9.4") + " --mode replaces --use-http", status: 2,
			form: "Error: [Bundle ",
			parts: []string{"Bundle " + host +
				"/community/etcd:v0.9.4 already exists, Bundle already added that provides package and csv"}},
		{name: "overwrite-notlatest", stderr: "add-overwrite-notlatest.db.stderr", from: "small",
			args:   "add -b " + recordedImages("synth/etcd-overwrite", "v0.9.2") + " --use-http --overwrite-latest",
			status: 1,
			form:   "Error: Cannot",
			parts:  []string{"Cannot overwrite a bundle that is not at the head of a channel using --overwrite-latest"}},
		{name: "overwrite", from: "small",
			args: "add -b " + recordedImages("synth/etcd-overwrite", "v0.9.4") + " --use-http --overwrite-latest"},
		{name: "nodefault", stderr: "add-nodefault.db.stderr",
			args: "add -b " + recordedImages("community/kairos-operator",
				"v2.0.1") + "," + recordedImages("synth/synth-nodefault", "v0.1.0") + " --mode replaces --use-http",
			status: 1,
			form:   "Error: unable", parts: []string{"unable to determine default channel among channel heads"}},
		{name: "replaces-fail", stderr: "add-replaces-fail.db.stderr",
			args: "add -b " + kairos + " --mode replaces --use-http", status: 1, form: "Error: [add prunes",
			parts: []string{"add prunes bundle kairos-operator.v2.0.1 (" + host +
				"/community/kairos-operator:v2.0.1) from package kairos-operator, channel alpha: this may be due to " +
				"incorrect channel head (kairos-operator.v2.2.0, skips/replaces [kairos-operator.v2.1.1])"}},
		{name: "replaces-fail-permissive", args: "add -b " + kairos + " --mode replaces --use-http --permissive"},
		{name: "subs-noalpha", stderr: "add-subs-noalpha.db.stderr",
			args: "add -b " + subs + " --mode replaces --use-http", status: 1, form: "Error: ",
			parts: []string{"SubstitutesFor is an alpha-only feature. You must enable alpha features with the flag " +
				"--enable-alpha in order to use this feature."}},
		{name: "subs", args: "add -b " + subs + " --mode replaces --use-http --enable-alpha"},
		{name: "deprec-readd", stderr: "add-deprec-readd.db.stderr", from: "deprec-v1.2.0",
			args: "add -b " + recordedImages("synth/synth-deprec", "v1.1.0") + " --use-http", status: 1,
			form: "Error: ",
			parts: []string{"add prunes bundle synth-deprec.v1.1.0 (" + host +
				"/synth/synth-deprec:v1.1.0) from package synth-deprec, channel stable: this may be due to incorrect " +
				"channel head (synth-deprec.v1.3.0, skips/replaces [synth-deprec.v1.2.0])."}},
		{name: "deprec-missing", stderr: "deprec-missing.db.stderr", from: "deprec-base",
			args: "deprecatetruncate -b " + recordedImages("synth/synth-deprec", "v9.9.9"), status: 1,
			form: "level=fatal msg=",
			parts: []string{"target bundlepaths for deprecation missing from registry: [" + host +
				"/synth/synth-deprec:v9.9.9]"}},
		{name: "deprec-v1.3.0", stderr: "deprec-v1.3.0.db.stderr", from: "deprec-base",
			args: "deprecatetruncate -b " + recordedImages("synth/synth-deprec", "v1.3.0"), status: 1,
			form: "level=fatal msg=",
			parts: []string{"error deprecating bundle " + host +
				"/synth/synth-deprec:v1.3.0: Bundle deprecation causing default channel removal"}},
		{name: "deprec-v2.0.0", stderr: "deprec-v2.0.0.db.stderr", from: "deprec-base",
			args: "deprecatetruncate -b " + recordedImages("synth/synth-deprec", "v2.0.0"), status: 1,
			form: "level=fatal msg=",
			parts: []string{"error deprecating bundle " + host +
				"/synth/synth-deprec:v2.0.0: Bundle deprecation causing default channel removal"}},
		{name: "deprec-v1.2.0", from: "deprec-base",
			args: "deprecatetruncate -b " + recordedImages("synth/synth-deprec", "v1.2.0")},
		{name: "deprec-allheads", from: "deprec-base",
			args: "deprecatetruncate -b " + recordedImages("synth/synth-deprec", "v1.3.0", "v1.4.0",
				"v2.0.0") + " --allow-package-removal"},
		{name: "rm-missing", stderr: "rm-missing.db.stderr", from: "small", args: "rm -o nosuchpackage", status: 1,
			form: `level=fatal msg="permissive mode disabled" error=`,
			parts: []string{"error deleting packages from database: error removing operator package nosuchpackage: " +
				"no package found for packagename nosuchpackage"}},
		{name: "rm", from: "medium", args: "rm -o prometheus,cockroachdb"},
		{name: "prune", from: "medium", args: "prune -p etcd,skupper-operator"},
		{name: "prune-none", from: "small", args: "prune -p nosuchpackage"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, name := range []string{"opm.db", "x.db"} {
				from := c.from
				if name == "opm.db" {
					from = c.name
				}
				if from != "" && all.Has("db/"+from+".db") {
					if err := os.WriteFile(filepath.Join(dir, name), all.File(t, "db/"+from+".db"), 0o644); err != nil {
						t.Fatal(err)
					}
				}
			}
			start := clitest.Snapshot(t, dir)
			args := append([]string{"registry"}, strings.Fields(strings.ReplaceAll(c.args, " --use-http", ""))...)
			if args[1] == "add" {
				args = append(args, "--registries-conf", conf, "--no-cache")
			}
			got := clitest.RunProgram(t, dir, "opm", append(args, "-d", "x.db")...)
			if got.Status != c.status || got.Stdout != "" {
				t.Fatalf("%+v, want status %d", got, c.status)
			}
			if c.status == 0 {
				for _, what := range []string{"packages", "channels", "bundles"} {
					ours, theirs := clitest.Done(t, dir, "bindery", "list", what, "x.db"), clitest.Done(t, dir, "bindery", "list", what,
						"opm.db")
					if ours != theirs {
						t.Errorf("list %s: ours is\n%s\nopm's\n%s", what, ours, theirs)
					}
				}
				return
			}
			if !strings.Contains(got.Stderr, c.form) {
				t.Errorf("no %q in\n%s", c.form, got.Stderr)
			}
			theirs := string(all.File(t, "db/"+c.stderr))
			for _, part := range c.parts {
				if !strings.Contains(theirs, part) {
					t.Fatalf("%q is no part of opm's error:\n%s", part, theirs)
				}
				for _, part := range strings.Split(part, "already exists, ") {
					if !strings.Contains(got.Stderr, part) {
						t.Errorf("no %q in\n%s", part, got.Stderr)
					}
				}
			}
			if now := clitest.Snapshot(t, dir); now != start {
				t.Errorf("before\n%s\nafter\n%s", start, now)
			}
		})
	}
}

// recordedImages names images of a repository of the recorded registry, as a list.
func recordedImages(repository string, tags ...string) string {
	var out []string
	for _, tag := range tags {
		out = append(out, testregistry.RecordedHost+"/"+repository+":"+tag)
	}
	return strings.Join(out, ",")
}
