package migrate_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/operator-bindery/bindery/declcfg"
	"github.com/operator-bindery/bindery/edit"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/migrate"
	"github.com/operator-bindery/bindery/render"
	"github.com/operator-bindery/bindery/sqlite"
)

// TestMain runs a migration instead of the tests if the environment says so, for tests that need a separate process.
func TestMain(m *testing.M) {
	if src := os.Getenv("MIGRATE_SOURCE"); src != "" {
		os.Exit(child(src, os.Getenv("MIGRATE_OUTPUT"), os.Getenv("MIGRATE_FAULT")))
	}
	os.Exit(m.Run())
}

// child migrates with a fault: with "limit" no file can grow beyond 64 KiB, as on a full disk; with "hang" it never
// ends after everything is written and before the final rename.
func child(src, out, fault string) int {
	o := migrate.Options{}
	switch fault {
	case "limit":
		if err := limitFileSize(64 << 10); err != nil {
			println(err.Error())
			return 3
		}
	case "hang":
		o.Progress = func(_ migrate.Step, n, _ int, _ string) {
			if n == 2 {
				println("hanging")
				// Reading stdin keeps the runtime from reporting a deadlock.
				_, _ = io.Copy(io.Discard, os.Stdin)
			}
		}
	}
	if _, err := o.Run(context.Background(), src, out); err != nil {
		println(err.Error())
		return 1
	}
	return 0
}

func command(t *testing.T, src, out, fault string) *osexec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := osexec.Command(self)
	c.Env = append(os.Environ(), "MIGRATE_SOURCE="+src, "MIGRATE_OUTPUT="+out, "MIGRATE_FAULT="+fault)
	return c
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func altered(t *testing.T, name string, statements ...string) string {
	t.Helper()
	path := recorded.Part(t).Database(t, name)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, s := range statements {
		if _, err := db.Exec(s); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

func TestFullDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a limit on the size of files")
	}
	dir := t.TempDir()
	output, err := command(t, recorded.Part(t).Database(t, "small"), filepath.Join(dir, "out"),
		"limit").CombinedOutput()
	var exit *osexec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 || len(output) == 0 {
		t.Errorf("got %v: %s", err, output)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("%s was left behind", left)
	}
}

func TestKilled(t *testing.T) {
	dir := t.TempDir()
	src, out := recorded.Part(t).Database(t, "small"), filepath.Join(dir, "out")
	c := command(t, src, out, "hang")
	stderr, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.StdinPipe(); err != nil { // stays open as long as the test runs
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 7)
	if _, err := stderr.Read(buf); err != nil || string(buf) != "hanging" {
		t.Fatalf("%q, %v", buf, err)
	}
	if err := c.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a killed migration has left an output: %v", err)
	}
	if _, err := (migrate.Options{Verify: true}).Run(context.Background(), src, out); err != nil {
		t.Fatal(err)
	}
	if left := names(t, dir); len(left) != 1 {
		t.Errorf("the next migration leaves %s", left)
	}
}

func TestOutputDirectory(t *testing.T) {
	src := recorded.Part(t).Database(t, "subs")
	dir := t.TempDir()
	empty, full, file := filepath.Join(dir, "empty"), filepath.Join(dir, "full"), filepath.Join(dir, "file")
	for _, d := range []string{empty, full} {
		if err := os.Mkdir(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{filepath.Join(full, "x"), file} {
		if err := os.WriteFile(f, []byte("mine"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ out, want string }{
		{empty, ""},
		{filepath.Join(dir, "deep", "er"), ""},
		{full, "must be empty"},
		{file, "file"},
	} {
		_, err := migrate.Options{}.Run(context.Background(), src, c.out)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", filepath.Base(c.out), err, c.want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(full, "x")); string(data) != "mine" {
		t.Errorf("what was there: %q, %v", data, err)
	}
}

func TestBrokenDatabaseLeavesNothing(t *testing.T) {
	for _, statement := range []string{
		"UPDATE operatorbundle SET version = 'latest' WHERE name = 'silicom-sts-operator.v0.0.6'",
		"UPDATE package SET name = '../../x' WHERE name = 'etcd'",
		"UPDATE operatorbundle SET bundle = '{' WHERE name = 'silicom-sts-operator.v0.0.6'",
	} {
		dir := t.TempDir()
		r, err := migrate.Options{}.Run(context.Background(), altered(t, "small", "PRAGMA foreign_keys=0", statement), filepath.Join(dir, "a", "out"))
		if err == nil || r != nil {
			t.Errorf("%s: got %v", statement, err)
		}
		if left := names(t, dir); len(left) > 0 {
			t.Errorf("%s: %s was left behind", statement, left)
		}
	}
}

func TestQuarantine(t *testing.T) {
	src := altered(t, "small", "UPDATE operatorbundle SET version = 'latest' WHERE name = 'etcdoperator.v0.9.2'")
	out := filepath.Join(t.TempDir(), "out")
	r, err := migrate.Options{Report: true, Verify: true, Render: render.Options{KeepGoing: true}}.Run(context.Background(), src, out)
	var partial *migrate.PartialError
	if !errors.As(err, &partial) || strings.Join(partial.Packages, ",") != "etcd" {
		t.Fatalf("got %v", err)
	}
	if got := names(t, out); strings.Join(got, ",") != "silicom-sts-operator" {
		t.Errorf("written: %s", got)
	}
	if len(r.Packages) != 2 || !strings.Contains(r.Packages[0].Quarantined, "latest") || r.Packages[0].Output != nil ||
		r.Packages[1].Output == nil || r.Packages[1].Quarantined != "" {
		t.Errorf("got %+v", r.Packages)
	}
	if !r.Verification.Same || len(r.Verification.Differences) != 1 || r.Verification.Differences[0].Reason == "" {
		t.Errorf("got %+v", r.Verification)
	}
}

func TestReport(t *testing.T) {
	r, err := migrate.Options{Report: true}.Run(context.Background(), recorded.Part(t).Database(t, "small"), filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	r.Source, r.Output = "small.db", "out"
	got, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "report-small.json")
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(golden, append(got, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(got)+"\n" != string(want) {
		t.Errorf("the report is\n%s", got)
	}
	for _, p := range r.Packages {
		p.Source.Deprecations = p.Output.Deprecations
		a, _ := json.Marshal(p.Source)
		b, _ := json.Marshal(p.Output)
		if string(a) != string(b) {
			t.Errorf("%s: %s in the database, %s written", p.Name, a, b)
		}
	}
}

// A directory migrates to the same result as the database at that level.
func TestDirectory(t *testing.T) {
	part := recorded.Part(t)
	dir := filepath.Join(t.TempDir(), "objects")
	if _, err := (migrate.Options{}).Run(context.Background(), part.Database(t, "small"), dir); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "metadata")
	r, err := migrate.Options{Format: declcfg.FormatYAML, Report: true, Render: render.Options{Level: edit.LevelCSVMetadata}}.Run(context.Background(), dir, out)
	if err != nil {
		t.Fatal(err)
	}
	sameTree(t, tree(t, out), recordedTree(t, part, "golden/small/migrate.csvmeta.d"))
	if len(r.Packages) != 2 || r.Packages[0].Source != nil || r.Packages[0].Output.Bundles != 6 {
		t.Errorf("got %+v", r.Packages)
	}
}

func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
	defer cancel()
	<-ctx.Done()
	dir := t.TempDir()
	if _, err := (migrate.Options{}).Run(ctx, recorded.Part(t).Database(t, "medium"), filepath.Join(dir, "out")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if left := names(t, dir); len(left) > 0 {
		t.Errorf("%s was left behind", left)
	}
}

// A bundle that already has olm.csv.metadata is not migrated and keeps its manifests.
func TestMetadataInTheDatabaseKeepsTheManifests(t *testing.T) {
	const name = "silicom-sts-operator.v0.0.6"
	src := altered(t, "small",
		`INSERT INTO properties(type, value, operatorbundle_name, operatorbundle_version, operatorbundle_path)
		SELECT 'olm.csv.metadata', '{"displayName":"mine"}', name, version, bundlepath FROM operatorbundle WHERE name = '`+name+`'`)
	out := filepath.Join(t.TempDir(), "out")
	o := migrate.Options{Verify: true, Render: render.Options{Level: edit.LevelCSVMetadata}}
	if _, err := o.Run(context.Background(), src, out); err != nil {
		t.Fatal(err)
	}
	db, err := sqlite.Open(context.Background(), src, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	facts, err := db.Facts(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	want := 0
	for _, n := range facts.Bundles[name].Objects {
		want += n
	}
	got := strings.Count(bundleText(t, out, name), `"olm.bundle.object"`)
	if want < 2 || got != want {
		t.Errorf("%d of %d manifests were written", got, want)
	}
}

// bundleText returns the written blob of a silicom bundle.
func bundleText(t *testing.T, dir, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "silicom-sts-operator", "catalog.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range strings.Split(string(data), "\n}\n") {
		if strings.Contains(blob, `"schema": "olm.bundle"`) && strings.Contains(blob, `"name": "`+name+`"`) {
			return blob
		}
	}
	t.Fatalf("no bundle %s", name)
	return ""
}

// Invalid packages of a directory are left out like those of a database.
func TestQuarantineOfADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "catalog")
	if _, err := (migrate.Options{}).Run(context.Background(), recorded.Part(t).Database(t, "small"), dir); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "etcd", "catalog.json")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	broken := strings.Replace(string(data), `"defaultChannel": "singlenamespace-alpha"`, `"defaultChannel": "nowhere"`,
		1)
	if err := os.WriteFile(file, []byte(broken), 0o644); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out")
	r, err := migrate.Options{Render: render.Options{KeepGoing: true}}.Run(context.Background(), dir, out)
	var partial *migrate.PartialError
	if !errors.As(err, &partial) || strings.Join(partial.Packages, ",") != "etcd" {
		t.Fatalf("got %v", err)
	}
	if got := names(t, out); strings.Join(got, ",") != "silicom-sts-operator" {
		t.Errorf("written: %s", got)
	}
	if len(r.Packages) != 2 || !strings.Contains(r.Packages[0].Quarantined, "nowhere") || r.Packages[0].Output != nil ||
		r.Packages[1].Output == nil {
		t.Errorf("got %+v", r.Packages)
	}
}

func TestProgressNamesEveryPackage(t *testing.T) {
	got := map[migrate.Step]int{}
	last := ""
	_, err := migrate.Options{Verify: true,
		Progress: func(s migrate.Step, n, all int, pkg string) {
			got[s]++
			if n != got[s] || all != 2 {
				t.Errorf("%s %s is number %d of %d and not %d of 2", s, pkg, n, all, got[s])
			}
			last = pkg
		}}.Run(t.Context(), "../testdata/db/small.db", filepath.Join(t.TempDir(), "out"))
	if err != nil || got[migrate.StepWrite] != 2 || got[migrate.StepVerify] != 2 || last != "silicom-sts-operator" {
		t.Errorf("%v, last %q: %v", got, last, err)
	}
}

// A catalog without packages is written only on request.
func TestEmpty(t *testing.T) {
	src, out := t.TempDir(), filepath.Join(t.TempDir(), "out")
	var empty *declcfg.EmptyError
	if _, err := (migrate.Options{}).Run(context.Background(), src, out); !errors.As(err, &empty) ||
		empty.Catalog != src {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was written: %v", err)
	}
	if _, err := (migrate.Options{AllowEmpty: true}).Run(context.Background(), src, out); err != nil {
		t.Error(err)
	}
}
