package build_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/operator-bindery/bindery/build"
	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/internal/testing/testregistry"
)

// crowdDir returns a directory with a catalog of packages p0 to p7 of increasing size.
func crowdDir(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for i := range 8 {
		clitest.WritePackage(t, dir, fmt.Sprintf("p%d", i), i)
	}
	return dir
}

func TestPlan(t *testing.T) {
	dir := crowdDir(t)
	before := clitest.Snapshot(t, dir)
	table := clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "--plan", "--max-layers", "4", "--server", "none")
	lines := strings.Split(strings.TrimSpace(table), "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], "LAYER") {
		t.Errorf("the plan is\n%s", table)
	}
	text := clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "--plan", "--max-layers", "4", "--server", "none",
		"--metadata-file", "-", "-t", "example.com/a:v1", "--push")
	var plan build.Planned
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	var all []string
	for i, l := range plan.Layers {
		all = append(all, l.Packages...)
		for _, want := range append([]string{string(l.Kind), fmt.Sprint(l.Uncompressed)},
			strings.Join(l.Packages, ", ")) {
			if !strings.Contains(lines[i+1], want) {
				t.Errorf("%q does not tell %q", lines[i+1], want)
			}
		}
	}
	slices.Sort(all)
	if got := strings.Join(all, ","); got != "p0,p1,p2,p3,p4,p5,p6,p7" || len(plan.Layers) != 4 ||
		plan.Totals.Packages != 8 {
		t.Errorf("%s", text)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "catalog", "--plan", "--digest-file",
		"digest"); got.Status != 1 || !strings.Contains(got.Stderr, "digest-file") {
		t.Errorf("a digest of what is not built: %+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "build", "catalog", "missing", "--plan"); got.Status != 1 ||
		got.Stdout != "" {
		t.Errorf("no catalog: %+v", got)
	}
	if after := clitest.Snapshot(t, dir); after != before {
		t.Errorf("files before\n%s\nafter\n%s", before, after)
	}
}

func TestPreviousImage(t *testing.T) {
	dir := crowdDir(t)
	registry := testregistry.New(t)
	name := registry.Host() + "/acme/catalog"
	run := func(args ...string) clitest.Result {
		t.Helper()
		return clitest.RunProgram(t, dir, "bindery",
			append(strings.Fields("build catalog catalog --use-http --server none --cache none --max-layers 4"),
				args...)...)
	}
	layersOf := func(args ...string) map[string]bool {
		t.Helper()
		got := run(append(args, "--metadata-file", "-")...)
		var account build.Image
		if err := json.Unmarshal([]byte(got.Stdout), &account); err != nil {
			t.Fatalf("%v: %+v", err, got)
		}
		out := map[string]bool{}
		for _, l := range account.Layers {
			out[string(l.Digest)] = true
		}
		return out
	}
	// The first build names the tag that it will create as previous image.
	got := run("-t", name+":latest", "--push", "--previous", name+":latest")
	if got.Status != 0 || !strings.Contains(got.Stderr, "image "+name+":latest does not exist") {
		t.Fatalf("%+v", got)
	}
	if again := run("-t", name+":latest", "--push", "--previous", name+":latest"); again.Status != 0 ||
		again.Stdout != got.Stdout || strings.Contains(again.Stderr, "no image") {
		t.Errorf("the same again: %+v", again)
	}
	old := layersOf("-t", "x:v1", "--dry-run")
	clitest.WritePackage(t, dir, "p0", 100)
	for previous, want := range map[string]int{"": 2, name + ":latest": 1, "docker://" + name + ":latest": 1} {
		args := []string{"-t", "x:v1", "--dry-run"}
		if previous != "" {
			args = append(args, "--previous", previous)
		}
		n := 0
		for l := range layersOf(args...) {
			if !old[l] {
				n++
			}
		}
		if n != want {
			t.Errorf("previous %q: %d new layers, want %d", previous, n, want)
		}
	}
	docker := "dir:" + filepath.Join(dir, "docker")
	if got := run("--output", docker, "--format", "docker"); got.Status != 0 {
		t.Fatal(got.Stderr)
	}
	if got := run("-t", "x:v1", "--dry-run", "--previous", docker); got.Status != 0 || !strings.Contains(got.Stderr,
		"has no layer annotations") {
		t.Errorf("%+v", got)
	}
	// Only a definite "not found" from the registry is accepted for a missing previous image.
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden, http.StatusInternalServerError} {
		registry.Interfere(func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(status); return true })
		if got := run("-t", "x:v1", "--dry-run", "--retries", "0", "--previous", name+":latest"); got.Status != 1 ||
			got.Stdout != "" {
			t.Errorf("status %d: %+v", status, got)
		}
	}
}

// Every command that builds an image of a catalog can keep the grouping of an earlier image.
func TestPreviousImageOfOtherCommands(t *testing.T) {
	dir := crowdDir(t)
	const what = " --server none --cache none --max-layers 4 --metadata-file -"
	groups := func(command string) string {
		t.Helper()
		var account build.Image
		if text := clitest.Done(t, dir, "bindery", strings.Fields(command+what)...); json.Unmarshal([]byte(text),
			&account) != nil {
			t.Fatal(text)
		}
		var out []string
		for _, l := range account.Layers {
			out = append(out, strings.Join(l.Packages, "+"))
		}
		return strings.Join(out, " ")
	}
	kept := groups("build catalog catalog --output oci:old:v1")
	clitest.WritePackage(t, dir, "p0", 100)
	clitest.Done(t, dir, "bindery", "build", "catalog", "catalog", "--output", "oci:new:v1", "--server", "none", "--cache",
		"none")
	without := strings.Replace(kept, "+p4", "", 1)
	for command, want := range map[string]string{
		"build catalog catalog -t x:v1 --dry-run":        kept,
		"migrate catalog -t x:v1 --dry-run":              kept,
		"migrate oci:new:v1 -t x:v1 --dry-run":           kept,
		"index rm -f catalog -o p4 -t x:v1 --dry-run":    without,
		"index rm -f oci:new:v1 -o p4 -t x:v1 --dry-run": without,
		"catalog rm oci:new:v1 p4 -t x:v1 --dry-run":     without,
	} {
		if got := groups(command + " --previous oci:old:v1"); got != want {
			t.Errorf("%s: %s in place of %s", command, got, want)
		}
		if got := groups(command); got == want {
			t.Errorf("%s: %s without --previous as well", command, got)
		}
	}
	if got := clitest.RunProgram(t, dir, "bindery",
		strings.Fields("index rm -f catalog -o p4 -t x:v1 --dry-run --account -"+what)...); got.Status != 1 ||
		!strings.Contains(got.Stderr, "both write to standard output") {
		t.Errorf("two accounts on standard output: %+v", got)
	}
	if got := clitest.RunProgram(t, dir, "bindery", "build", "compose", "x.yaml", "--previous",
		"oci:old:v1"); got.Status != 1 || !strings.Contains(got.Stderr, "unknown flag: --previous") {
		t.Errorf("references say themselves what shares a layer: %+v", got)
	}
}
