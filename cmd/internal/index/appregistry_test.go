package index_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// An export has the same bytes as opm's, for every form of the index.
func TestIndexExportIsThatOfOpm(t *testing.T) {
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	want := recorded.Export(t)
	for args, packages := range map[string][]string{
		"-i 127.0.0.1:5056/index/small-db:v1 -p etcd -c none -f out --use-http": {"etcd"},
		"-i 127.0.0.1:5056/index/small-db:v1 -p etcd,silicom-sts-operator -c none -f out --use-http": {"etcd",
			"silicom-sts-operator"},
		"-i 127.0.0.1:5056/index/small-fbc:v1 -o etcd -c podman -f out":                            {"etcd"},
		"-i docker://127.0.0.1:5056/index/small-fbc:v1 --download-folder below/out --package etcd": {"etcd"},
		"--index small.db -f out":                  {"etcd", "silicom-sts-operator"},
		"--index small.db -f out --jobs 1 -p etcd": {"etcd"},
		"--index migrated -f out -p etcd":          {"etcd"},
	} {
		t.Run(args, func(t *testing.T) {
			dir := clitest.WorkDir(t)
			clitest.Done(t, dir, "bindery", "migrate", "small.db", "migrated", "-o", "yaml", "--migrate-level",
				"bundle-object-to-csv-metadata")
			got := clitest.RunOpm(t, conf, dir, append([]string{"index", "export"}, strings.Fields(args)...)...)
			if got.Status != 0 || got.Stdout != "" {
				t.Fatalf("%+v", got)
			}
			out := filepath.Join(dir, "out")
			if strings.Contains(args, "below") {
				out = filepath.Join(dir, "below", "out")
			}
			entries, err := os.ReadDir(out)
			if err != nil || len(entries) != len(packages) {
				t.Fatalf("%v, %v", entries, err)
			}
			for _, pkg := range packages {
				if a, b := clitest.TreeOf(t, os.DirFS(filepath.Join(out, pkg))), clitest.TreeOf(t,
					os.DirFS(filepath.Join(want, pkg))); a != b {
					t.Errorf("%s differs", pkg)
				}
				if !strings.Contains(got.Stderr, "Writing package.yaml in ") || !strings.Contains(got.Stderr,
					"out/"+pkg) {
					t.Errorf("not told: %s", got.Stderr)
				}
			}
			if strings.Contains(strings.Join(packages, " "), "silicom") && !strings.Contains(got.Stderr,
				"silicom-sts-operator.v0.0.1\\\": the 2 dependencies in its metadata have no place") {
				t.Errorf("the lost dependencies are not told: %s", got.Stderr)
			}
		})
	}
}

func TestIndexExportWritesNothingOnErrors(t *testing.T) {
	registry := testregistry.Recorded(t)
	conf := registry.RegistriesConf(t, testregistry.RecordedHost)
	for args, want := range map[string][]string{
		"-i small.db -p etcd,nosuch -p other -f out": {`package "nosuch" not found`, `package "other" not found`},
		"-i small.db -p etcd -f there":               {"there/etcd/0.9.4: file already exists with other files than the bundle's"},
		"-i small.db -p etcd -f icon.txt":            {"icon.txt: exists and is not a directory"},
		"-i small.db -f small.db":                    {"the output \"small.db\" is the input"},
		"-i small.db -c nosuch":                      {"invalid --container-tool value"},
		"-p etcd":                                    {`required flag(s) "index" not set`},
		"-i 127.0.0.1:5056/community/etcd:v0.9.4":    {"cannot list non-index"},
		"-i small.db -f out --registries-conf /dev/null --retries 0 --timeout 20s": {"127.0.0.1:5056/community/etcd:v0.6.1",
			"127.0.0.1:5056/community/silicom-sts-operator:v0.0.6"},
	} {
		t.Run(args, func(t *testing.T) {
			dir := clitest.WorkDir(t)
			if err := os.MkdirAll(filepath.Join(dir, "there/etcd/0.9.4"), 0o777); err != nil {
				t.Fatal(err)
			}
			before := clitest.Snapshot(t, dir)
			line := append([]string{"index", "export"}, strings.Fields(args)...)
			if !strings.Contains(args, "--registries-conf") {
				line = append(line, "--registries-conf", conf, "--no-cache")
			}
			got := clitest.RunProgram(t, dir, "bindery", line...)
			if got.Status != 1 || got.Stdout != "" {
				t.Errorf("%+v", got)
			}
			for _, w := range want {
				if !strings.Contains(got.Stderr, w) {
					t.Errorf("%q is not in %s", w, got.Stderr)
				}
			}
			if after := clitest.Snapshot(t, dir); after != before {
				t.Errorf("files before\n%s\nafter\n%s", before, after)
			}
		})
	}
}

// Exporting again changes nothing, and an existing package gets the new bundles.
func TestIndexExportAddsToAPackage(t *testing.T) {
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	dir := clitest.WorkDir(t)
	export := func() string {
		t.Helper()
		got := clitest.RunProgram(t, dir, "bindery", "index", "export", "-i", "small.db", "-p", "etcd", "-f", "out",
			"--registries-conf", conf, "--no-cache")
		if got.Status != 0 {
			t.Fatalf("%+v", got)
		}
		return got.Stderr
	}
	export()
	all := clitest.TreeOf(t, os.DirFS(dir+"/out"))
	if told := export(); !strings.Contains(told, "already") {
		t.Errorf("told %q", told)
	}
	if again := clitest.TreeOf(t, os.DirFS(dir+"/out")); again != all {
		t.Error("the second time differs")
	}
	if err := os.RemoveAll(filepath.Join(dir, "out/etcd/0.9.2")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "out/etcd/package.yaml"), []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	export()
	if again := clitest.TreeOf(t, os.DirFS(dir+"/out")); again != all {
		t.Error("what was missing is not there")
	}
}

// A database of exported packages has the same graph as the original, is reproducible, and holds the same catalog as
// the directory.
func TestInitializeRoundTrip(t *testing.T) {
	dir := clitest.WorkDir(t)
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(recorded.Export(t))); err != nil {
		t.Fatal(err)
	}
	clitest.Done(t, dir, "initializer")
	clitest.Done(t, dir, "bindery", "registry", "initialize", "--manifests", "manifests", "--output", "again.db")
	first, second := clitest.ReadFile(t, filepath.Join(dir, "bundles.db")), clitest.ReadFile(t, filepath.Join(dir, "again.db"))
	if first != second {
		t.Error("the same directory gives different databases")
	}
	for _, c := range []struct{ name, db string }{{"opm", "bundles.db"}, {"bindery", "again.db"}} {
		clitest.Done(t, dir, c.name, "migrate", c.db, "of-"+c.db)
		clitest.Done(t, dir, c.name, "migrate", "manifests", "of-manifests-"+c.db)
		if a, b := clitest.TreeOf(t, os.DirFS(filepath.Join(dir, "of-"+c.db))), clitest.TreeOf(t,
			os.DirFS(filepath.Join(dir, "of-manifests-"+c.db))); a != b || a == "" {
			t.Errorf("%s: the directory migrates otherwise than the database of it", c.name)
		}
		for _, what := range []string{"packages", "channels"} {
			want := clitest.Done(t, dir, c.name, "list", what, "small.db")
			for _, ref := range []string{c.db, "manifests", "of-" + c.db} {
				if got := clitest.Done(t, dir, c.name, "list", what, ref); got != want {
					t.Errorf("%s: list %s %s has\n%s\nwant\n%s", c.name, what, ref, got, want)
				}
			}
		}
		if a, b := clitest.Done(t, dir, c.name, "render", c.db), clitest.Done(t, dir, c.name, "render", "manifests"); a != b ||
			a == "" {
			t.Errorf("%s: the directory renders otherwise than the database of it", c.name)
		}
	}
	for _, what := range []string{"packages", "channels", "heads", "edges", "deprecations"} {
		if got := clitest.RunProgram(t, dir, "bindery", "diff", "small.db", "again.db", "--only", what); got.Status != 0 {
			t.Errorf("%s differ:\n%s", what, got.Stdout)
		}
	}
	// Exporting the database of an export gives the same export, except for file names and key order.
	clitest.Done(t, dir, "bindery", "index", "export", "-i", "again.db", "-f", "out")
	clitest.Done(t, dir, "bindery", "registry", "initialize", "-m", "out", "-o", "third.db")
	if third := clitest.ReadFile(t, filepath.Join(dir, "third.db")); third != first {
		t.Error("the database of the export of a database differs from it")
	}
	for _, pkg := range []string{"etcd", "silicom-sts-operator"} {
		if a, b := clitest.ReadFile(t, filepath.Join(dir, "out", pkg, "package.yaml")), clitest.ReadFile(t,
			filepath.Join(dir, "manifests", pkg, "package.yaml")); a != b {
			t.Errorf("package.yaml of %s:\n%s\nwant\n%s", pkg, a, b)
		}
	}
}

// After export and import, a database to which opm added bundles has the same graph, and the directory migrates to the
// same catalog as the database.
func TestExportAndInitializeKeepTheGraph(t *testing.T) {
	conf := testregistry.Recorded(t).RegistriesConf(t, testregistry.RecordedHost)
	for _, name := range []string{"medium", "incremental", "constraint"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			db := recorded.All(t).Database(t, name)
			clitest.Done(t, dir, "bindery", "index", "export", "-i", db, "-f", "manifests", "--registries-conf", conf)
			clitest.Done(t, dir, "bindery", "registry", "initialize")
			for _, what := range []string{"packages", "channels", "heads", "edges", "deprecations"} {
				if got := clitest.RunProgram(t, dir, "bindery", "diff", db, "bundles.db", "--only", what); got.Status != 0 {
					t.Errorf("%s differ: %s", what, got.Stdout)
				}
			}
			clitest.Done(t, dir, "bindery", "migrate", "manifests", "a")
			clitest.Done(t, dir, "bindery", "migrate", "bundles.db", "b")
			if clitest.TreeOf(t, os.DirFS(filepath.Join(dir, "a"))) != clitest.TreeOf(t, os.DirFS(filepath.Join(dir, "b"))) {
				t.Error("the directory migrates otherwise than the database of it")
			}
		})
	}
}

// Every command that reads catalogs reads package manifests too.
func TestDoorsReadPackageManifests(t *testing.T) {
	dir := clitest.WorkDir(t)
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(recorded.Export(t))); err != nil {
		t.Fatal(err)
	}
	clitest.Done(t, dir, "bindery", "registry", "initialize")
	blobs := clitest.Done(t, dir, "bindery", "render", "manifests", "--image-ref-template",
		"example.test/{{.Package}}:v{{.Version}}", "-o", "ndjson")
	if !strings.Contains(blobs, `"image":"example.test/etcd:v0.9.4"`) {
		t.Error("the template makes no images")
	}
	clitest.Done(t, dir, "bindery", "graph", "manifests", "-o", "mermaid")
	a := clitest.Done(t, dir, "bindery", "build", "catalog", "manifests", "-t", "example.test/a:v1", "--dry-run")
	b := clitest.Done(t, dir, "bindery", "build", "catalog", "bundles.db", "-t", "example.test/a:v1", "--dry-run")
	if a != b || a == "" {
		t.Errorf("built %q of the directory and %q of the database", a, b)
	}
	for _, args := range []string{"serve manifests", "registry serve -d bundles.db"} {
		port := clitest.FreePort(t)
		clitest.ServeUntilStopped(t, dir, port, append(strings.Fields(args), "-p", port)...)()
	}
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", "manifests/etcd", "one", "-o", "yaml"); got.Status != 0 {
		t.Errorf("the directory of one package: %+v", got)
	}
}

// Bundles from package manifests can be added to catalogs of both forms. Package manifests themselves cannot be edited.
func TestAddPackageManifests(t *testing.T) {
	dir := clitest.WorkDir(t)
	if err := os.CopyFS(filepath.Join(dir, "manifests"), os.DirFS(recorded.Export(t))); err != nil {
		t.Fatal(err)
	}
	clitest.Done(t, dir, "bindery", "catalog", "add", "new", "manifests", "--create")
	clitest.Done(t, dir, "bindery", "registry", "add", "-d", "new.db", "-b", "manifests")
	for _, catalog := range []string{"new", "new.db"} {
		if got := clitest.RunProgram(t, dir, "bindery", "diff", "manifests", catalog); got.Status != 0 {
			t.Errorf("%s differs: %+v", catalog, got)
		}
	}
	for _, args := range []string{"catalog add manifests manifests", "catalog rm manifests etcd",
		"registry prune -d manifests -p etcd", "index rm -f manifests -o etcd -t a/b:v1"} {
		before := clitest.Snapshot(t, dir)
		got := clitest.RunProgram(t, dir, "bindery", strings.Fields(args)...)
		if got.Status != 1 || !strings.Contains(got.Stderr, "holds package manifests, not a catalog") {
			t.Errorf("%s: %+v", args, got)
		}
		if after := clitest.Snapshot(t, dir); after != before {
			t.Errorf("%s: files before\n%s\nafter\n%s", args, before, after)
		}
	}
}

func TestInitializeTellsAllProblems(t *testing.T) {
	dir := clitest.WorkDir(t)
	write := func(name, text string) {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	csv := func(name, version, more string) string {
		return fmt.Sprintf(
			"apiVersion: operators.coreos.com/v1alpha1\nkind: ClusterServiceVersion\nmetadata: {name: %s}\nspec: "+
				"{version: %s, %s}\n", name, version, more)
	}
	write("manifests/a/package.yaml", "packageName: a\nchannels: [{name: stable, currentCSV: a.v1}]\n")
	write("manifests/a/1/a.yaml", csv("a.v1", "1.0.0", ""))
	write("manifests/b/package.yaml", "packageName: b\nchannels: [{name: stable, currentCSV: b.v2}]\n")
	write("manifests/b/2/b.yaml", csv("b.v2", "2.0.0", "replaces: b.v1"))
	write("manifests/c/package.yaml", "packageName: c\nchannels: [{name: stable, currentCSV: imaginary}]\n")
	write("bundles.db", "not a database, and not to be replaced")
	before := clitest.Snapshot(t, dir)
	got := clitest.RunProgram(t, dir, "bindery", "registry", "initialize", "-o", "x.db")
	for _, want := range []string{"Invalid bundle b.v2, replaces nonexistent bundle b.v1",
		`"imaginary" is not among the manifests`} {
		if got.Status != 1 || !strings.Contains(got.Stderr, want) {
			t.Errorf("%q is not in %+v", want, got)
		}
	}
	if got := clitest.RunProgram(t, dir, "initializer"); got.Status != 1 || !strings.Contains(got.Stderr,
		"is not a database") || !strings.Contains(got.Stderr, "level=fatal") {
		t.Errorf("%+v", got)
	}
	if after := clitest.Snapshot(t, dir); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
	got = clitest.RunProgram(t, dir, "initializer", "-m", "manifests", "-o", "x.db", "--permissive")
	if got.Status != 0 || !strings.Contains(got.Stderr, "imaginary") || !strings.Contains(got.Stderr, "b.v1") {
		t.Errorf("%+v", got)
	}
	if listed := clitest.Done(t, dir, "bindery", "list", "packages", "x.db"); !strings.Contains(listed, "\na ") ||
		strings.Contains(listed, "\nb ") {
		t.Errorf("listed\n%s", listed)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "migrate", "manifests", "out", "--keep-going"); got.Status != 4 {
		t.Errorf("%+v", got)
	}
}

// The program can be started as registry-server.
func TestRegistryServer(t *testing.T) {
	dir := clitest.WorkDir(t)
	clitest.CopyFile(t, "../../../testdata/db/small.db", filepath.Join(dir, "bundles.db"))
	port := clitest.FreePort(t)
	clitest.ServeAs(t, "registry-server", dir, port, "-p", port, "--skip-migrate", "-t", "log")()
}
