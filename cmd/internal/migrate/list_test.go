package migrate_test

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.podman.io/image/v5/manifest"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/recorded"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// unpackedDatabase writes a recorded database to dir.
func unpackedDatabase(t *testing.T, dir, name string) string {
	t.Helper()
	to := filepath.Join(dir, name+".db")
	clitest.CopyFile(t, recorded.Part(t).Database(t, name), to)
	return to
}

// breakDatabase makes a package of the small database invalid.
func breakDatabase(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(
		`UPDATE operatorbundle SET version = 'latest' WHERE name = 'silicom-sts-operator.v0.0.2'`); err != nil {
		t.Fatal(err)
	}
}

// databases writes some recorded valid databases to dir/db.
func databases(t *testing.T, dir string) []string {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "db"), 0o755); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, name := range recorded.Part(t).Databases(t) {
		switch name {
		case "header-only", "notadb", "truncated", "zero":
			continue
		}
		if len(out) < 8 {
			unpackedDatabase(t, filepath.Join(dir, "db"), name)
			out = append(out, name)
		}
	}
	return out
}

func sameContents(t *testing.T, got, want string) {
	t.Helper()
	a, b := clitest.Contents(t, got), clitest.Contents(t, want)
	for name := range b {
		if a[name] != b[name] {
			t.Errorf("%s: %s is another one", got, name)
		}
	}
	if len(a) != len(b) {
		t.Errorf("%s has %d files, %s %d", got, len(a), want, len(b))
	}
}

// A list of databases, images and catalogs with an invalid one: the valid ones are migrated with the same result as
// "migrate SRC OUT".
func TestMigrateList(t *testing.T) {
	dir := clitest.WorkDir(t)
	reg := testregistry.New(t)
	unpackedDatabase(t, dir, "medium")
	clitest.CopyFile(t, filepath.Join(dir, "small.db"), filepath.Join(dir, "broken one.db"))
	breakDatabase(t, filepath.Join(dir, "broken one.db"))
	reg.AddImage(t, "acme/index", "v1", clitest.DatabaseImage(t, filepath.Join(dir, "small.db"), "amd64"))
	clitest.DatabaseImage(t, filepath.Join(dir, "medium.db"), "amd64").WriteLayout(t, filepath.Join(dir, "layout"), "v1")
	list := "# many\n" +
		"medium.db out/medium\n" +
		"'broken one.db' out/broken\n" +
		reg.Host() + "/acme/index:v1 out/image oci:out/oci:v1 -> " + reg.Host() + "/acme/catalog:v1\n" +
		"oci:layout:v1 out/layout  # a layout\n" +
		"cat out/cat\n" +
		"nosuch.db out/nosuch\n"
	if err := os.WriteFile(filepath.Join(dir, "list"), []byte(list), 0o644); err != nil {
		t.Fatal(err)
	}
	migrate := func(more ...string) clitest.Result {
		t.Helper()
		return clitest.RunProgram(t, dir, "bindery",
			append([]string{"migrate", "--from-file", "list", "--push", "--use-http", "--server", "none", "--results",
				"results", "--verify"}, more...)...)
	}
	if got := migrate(); got.Status != 1 || !strings.Contains(got.Stdout, "failed") || !strings.Contains(got.Stderr,
		"hint: run the same command again") {
		t.Errorf("without --keep-going: %+v", got)
	}
	got := migrate("--keep-going")
	if got.Status != 4 || !strings.Contains(got.Stderr, "1 of 6 lines failed, invalid packages were skipped in 1") ||
		!strings.Contains(got.Stdout, "incomplete") {
		t.Errorf("%+v", got)
	}
	status := map[int]string{}
	for _, r := range clitest.LineResults(t, clitest.ReadFile(t, filepath.Join(dir, "results"))) {
		status[r.Line] = string(r.Status)
		if report := filepath.Join(dir, r.Report); !clitest.Exists(t, report) {
			t.Errorf("line %d has no report", r.Line)
		}
		if (r.Error != nil) != (r.Status == "failed") || r.Line == 3 && strings.Join(r.Quarantined,
			"") != "silicom-sts-operator" || r.Line == 4 && !strings.HasPrefix(r.Image, "sha256:") {
			t.Errorf("%+v", r)
		}
	}
	if want := map[int]string{2: "done", 3: "incomplete", 4: "done", 5: "done", 6: "done",
		7: "failed"}; fmt.Sprint(status) != fmt.Sprint(want) {
		t.Errorf("%v", status)
	}
	for out, src := range map[string]string{"medium": "medium.db", "broken": "broken one.db", "image": "small.db",
		"layout": "medium.db", "cat": "cat"} {
		if got := clitest.RunProgram(t, dir, "bindery", "migrate", src, "want-"+out,
			"--keep-going"); got.Status != 0 && got.Status != 4 {
			t.Fatal(got.Stderr)
		}
		sameContents(t, filepath.Join(dir, "out", out), filepath.Join(dir, "want-"+out))
	}
	want := clitest.RunProgram(t, dir, "bindery", "render", "small.db").Stdout
	for _, image := range []string{"oci:out/oci:v1", reg.Host() + "/acme/catalog:v1"} {
		if clitest.RunProgram(t, dir, "bindery", "render", image, "--use-http").Stdout != want {
			t.Errorf("%s renders otherwise", image)
		}
	}
	// A second run writes nothing and reports everything.
	before := clitest.Snapshot(t, filepath.Join(dir, "out"))
	reg.Forget()
	got = migrate("--keep-going")
	if got.Status != 4 || !strings.Contains(got.Stdout, "done before  4") || strings.Contains(got.Stderr, "wrote") {
		t.Errorf("again: %+v", got)
	}
	// reading the configuration is allowed
	if n := reg.Count("GET /v2/acme/index/blobs") + reg.Count("PUT") + reg.Count("POST"); n > 1 {
		t.Errorf("%d requests for content: %v", n, reg.Requests())
	}
	if after := clitest.Snapshot(t, filepath.Join(dir, "out")); after != before {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
	// A moved tag and a removed directory are written again.
	other := testregistry.Image{Layers: []map[string]string{{"a": "a"}}}
	reg.AddImage(t, "acme/catalog", "v1", other)
	if err := os.RemoveAll(filepath.Join(dir, "out", "layout")); err != nil {
		t.Fatal(err)
	}
	if got := migrate("--keep-going"); got.Status != 4 || !strings.Contains(got.Stdout, "done before  2") {
		t.Errorf("after a change: %+v", got)
	}
	if clitest.RunProgram(t, dir, "bindery", "render", reg.Host()+"/acme/catalog:v1", "--use-http").Stdout != want {
		t.Error("the tag was not moved back")
	}
	if left, err := filepath.Glob(filepath.Join(dir, "out", ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// A line whose registry refuses the types of OCI gets Docker's in all its destinations, and is done afterwards.
func TestMigrateListToOldRegistries(t *testing.T) {
	dir, old, other := clitest.WorkDir(t), testregistry.New(t), testregistry.New(t)
	old.RefuseOCI("")
	clitest.WriteFile(t, filepath.Join(dir, "list"), "small.db docker://"+other.Host()+"/acme/catalog:v1 -> "+old.Host()+"/acme/catalog:v1\n")
	migrate := func(more ...string) clitest.Result {
		t.Helper()
		line := []string{"migrate", "--from-file", "list", "--push", "--use-http", "--server", "none", "--no-cache"}
		return clitest.Finish(t, clitest.Command(dir, "bindery", append(line, more...)...))
	}
	if got := migrate("--format", "oci"); got.Status == 0 {
		t.Errorf("a format that is asked for: %+v", got)
	}
	if got := migrate(); got.Status != 0 || strings.Count(got.Stderr, "--format docker") != 1 {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{other.Host() + "/acme/catalog:v1", old.Host() + "/acme/catalog:v1"} {
		if d := described(t, name); d.MediaType != manifest.DockerV2Schema2MediaType {
			t.Errorf("%s is %s", name, d.MediaType)
		}
	}
	if got := migrate(); got.Status != 0 || !strings.Contains(got.Stdout, "done before  1") || strings.Contains(got.Stderr, "Docker") {
		t.Errorf("again: %+v", got)
	}
	clitest.WriteFile(t, filepath.Join(dir, "list"), "small.db oci:out/oci:v1 -> "+old.Host()+"/acme/catalog:v2\n")
	if got := migrate(); got.Status == 0 || !strings.Contains(got.Stderr, "with Docker's types: oci:out/oci:v1: an OCI layout holds OCI images only") {
		t.Errorf("a layout beside the registry: %+v", got)
	}
}

// killList writes a list of recorded databases with directories and images in one layout as outputs, and returns the
// expected outputs.
func killList(t *testing.T) (dir string, names []string, args []string) {
	t.Helper()
	dir = t.TempDir()
	names = databases(t, dir)
	var list strings.Builder
	for _, name := range names {
		fmt.Fprintf(&list, "db/%s.db out/%s oci:out/images:%s\n", name, name, name)
	}
	if err := os.WriteFile(filepath.Join(dir, "list"), []byte(list.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, names, []string{"migrate", "--from-file", "list", "--server", "none", "--verify"}
}

// checkKilled checks that a continued list has the same outputs as an uninterrupted one.
func checkKilled(t *testing.T, dir string, names []string) {
	t.Helper()
	want := t.TempDir()
	for _, name := range names {
		if got := clitest.RunProgram(t, dir, "bindery", "migrate", "db/"+name+".db",
			filepath.Join(want, name)); got.Status != 0 {
			t.Fatal(got.Stderr)
		}
		sameContents(t, filepath.Join(dir, "out", name), filepath.Join(want, name))
		if a, b := clitest.RunProgram(t, dir, "bindery", "render", "oci:out/images:"+name), clitest.RunProgram(t, dir, "bindery",
			"render", filepath.Join(want, name)); a.Stdout != b.Stdout || a.Status != 0 {
			t.Errorf("%s: the image renders otherwise: %s", name, a.Stderr)
		}
	}
	for _, pattern := range []string{"out/.*", "out/images/.*", ".*", "list.reports/.*"} {
		if left, err := filepath.Glob(filepath.Join(dir, pattern)); err != nil || len(left) > 0 {
			t.Errorf("left: %v (%v)", left, err)
		}
	}
}

// A run that is repeatedly killed at random moments finally completes; no temporary files are left and no output is
// written twice.
func TestMigrateListKilled(t *testing.T) {
	dir, names, args := killList(t)
	temp := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	kills := 0
	for wait := 30 * time.Millisecond; ; wait += wait/8 + time.Duration(20+random.IntN(80))*time.Millisecond {
		cmd := clitest.Command(dir, "bindery", args...)
		cmd.Env = append(cmd.Env, "TMPDIR="+temp)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(wait, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		timer.Stop()
		if err == nil {
			break
		}
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Exited() {
			t.Fatalf("after %d kills: %v\n%s", kills, err, stderr.String())
		}
		kills++
	}
	if kills < 3 {
		t.Errorf("killed %d times only", kills)
	}
	t.Logf("killed %d times", kills)
	if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 0 || !strings.Contains(got.Stdout,
		fmt.Sprintf("done before  %d\n", len(names))) {
		t.Errorf("%+v", got)
	}
	checkKilled(t, dir, names)
}

// A run that is terminated by a signal keeps the finished lines and can be continued.
func TestMigrateListTerminated(t *testing.T) {
	dir, names, args := killList(t)
	reg := testregistry.New(t)
	reached := make(chan struct{}, 10)
	reg.Interfere(func(_ http.ResponseWriter, r *http.Request) bool {
		reached <- struct{}{}
		<-r.Context().Done()
		return true
	})
	list := filepath.Join(dir, "list")
	complete := clitest.ReadFile(t, list)
	if err := os.WriteFile(list, []byte(complete+reg.Host()+"/acme/slow:v1 out/slow\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := clitest.Command(dir, "bindery", append(args, "--use-http", "--results", "results")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-reached
	// Meanwhile no other process can run the list.
	if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 1 || !strings.Contains(got.Stderr,
		"another run is using it") {
		t.Errorf("a second run: %+v", got)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 143 || !strings.Contains(stderr.String(),
		"interrupted by SIGTERM") {
		t.Errorf("%v\n%s", err, stderr.String())
	}
	done := 0
	for _, r := range clitest.LineResults(t, clitest.ReadFile(t, filepath.Join(dir, "results"))) {
		if r.Status == "done" {
			done++
		}
	}
	if done < len(names)-1 {
		t.Errorf("%d are done", done)
	}
	if err := os.WriteFile(list, []byte(complete), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 0 {
		t.Errorf("%+v", got)
	}
	checkKilled(t, dir, names)
}

// If no file can grow, as on a full disk, lines fail and leave nothing; a later run with space completes them.
func TestMigrateListFullDisk(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a limit on the size of files")
	}
	dir, names, args := killList(t)
	// ulimit counts blocks of 512 or 1024 bytes: enough for some of the databases.
	cmd := exec.Command("sh", "-c", "ulimit -f 256 && trap '' XFSZ && exec \"$0\" \"$@\"",
		filepath.Join(clitest.BinDir, "bindery"))
	cmd.Args = append(cmd.Args, append(args, "--keep-going")...)
	cmd.Dir = dir
	got := clitest.Finish(t, cmd)
	if got.Status != 4 || !strings.Contains(got.Stderr, "file too large") {
		t.Errorf("%+v", got)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "out", ".*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v (%v)", left, err)
	}
	if got := clitest.RunProgram(t, dir, "bindery", args...); got.Status != 0 || !strings.Contains(got.Stdout, "done before") {
		t.Errorf("%+v", got)
	}
	checkKilled(t, dir, names)
}
