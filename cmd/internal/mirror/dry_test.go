package mirror_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/operator-bindery/bindery/cmd/internal/clitest"
	"github.com/operator-bindery/bindery/mirror"
)

// Every command of mirrors has a dry run with the size of each repository, which changes nothing.
func TestMirrorDryRuns(t *testing.T) {
	w := newMirrorWorld(t)
	for _, setUp := range []string{"run -c imageset.yaml --workspace ws TARGET",
		"run -c imageset.yaml file://media",
		"delete -c delete.yaml --workspace ws --list list.yaml TARGET"} {
		if got := w.Run("mirror " + setUp); got.Status != 0 {
			t.Fatalf("%s: %+v", setUp, got)
		}
	}
	requests := func() (n int) {
		for _, q := range w.Registry.Requests() {
			if !strings.HasPrefix(q, "GET ") && !strings.HasPrefix(q, "HEAD ") {
				n++
			}
		}
		return n
	}
	before := requests()
	for _, line := range []string{
		"plan -c imageset.yaml",
		"run -c imageset.yaml --workspace other TARGET/other",
		"run -c imageset.yaml file://new",
		"run -c imageset.yaml --from media TARGET/other",
		"verify TARGET -c imageset.yaml",
		"verify file://media",
		"delete --list list.yaml TARGET",
		"inventory TARGET",
	} {
		t.Run(line, func(t *testing.T) {
			got := w.Run("mirror " + line + " --dry-run -o json")
			var answer struct {
				Repositories []mirror.RepositoryBytes `json:"repositories"`
			}
			if err := json.Unmarshal([]byte(got.Stdout), &answer); err != nil || got.Status != 0 {
				t.Fatalf("%v: %+v", err, got)
			}
			var sum int64
			for _, r := range answer.Repositories {
				sum += r.Bytes
			}
			if len(answer.Repositories) < 2 || sum < 1000 {
				t.Errorf("%+v", answer.Repositories)
			}
			if text := w.Run("mirror " + line + " --dry-run"); text.Status != 0 || !strings.Contains(text.Stdout, " KiB") &&
				!strings.Contains(text.Stdout, " B\n") {
				t.Errorf("as text: %+v", text)
			}
		})
	}
	if after := requests(); after != before {
		t.Errorf("%d requests that change something", after-before)
	}
}

// A dry run asks the target first, as a run does, and says the same of one that does not answer.
func TestDryRunAsksTheTarget(t *testing.T) {
	w := newMirrorWorld(t)
	dead := "127.0.0.1:" + clitest.FreePort(t)
	for _, more := range []string{"", " --dry-run"} {
		start := time.Now()
		got := w.Run("mirror run -c imageset.yaml --workspace dead --retries 0 docker://" + dead + "/m" + more)
		if got.Status != 1 || !strings.Contains(got.Stderr, "connection refused") || strings.Contains(got.Stderr, "cannot be asked") ||
			time.Since(start) > 30*time.Second {
			t.Errorf("%q: status %d after %v: %s", more, got.Status, time.Since(start), got.Stderr)
		}
	}
}

// The images of indexes are listed whatever the target has, and those that are missing with them.
func TestManifestLists(t *testing.T) {
	w := newMirrorWorld(t)
	lists := func(name string) string {
		text, err := os.ReadFile(filepath.Join(w.Dir, "ws", "working-dir", "dry-run", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	run := func(line string) {
		t.Helper()
		if got := w.Run(line); got.Status != 0 {
			t.Fatalf("%s: %+v", line, got)
		}
	}
	const common = "oc-mirror --v2 -c imageset.yaml --workspace file://ws TARGET --dest-tls-verify=false --src-tls-verify=false"
	run(common + " --dry-run-manifest-lists")
	before := lists("mapping.txt")
	run("mirror run -c imageset.yaml --workspace other TARGET")
	run(common + " --dry-run-manifest-lists")
	if after := lists("mapping.txt"); after != before {
		t.Errorf("without images at the target:\n%s\nwith them:\n%s", before, after)
	}
	run(common + " --dry-run")
	if plain := lists("mapping.txt"); strings.Count(before, "\n") <= strings.Count(plain, "\n") {
		t.Errorf("no index is listed with its images:\n%s", before)
	}
	run("oc-mirror --v2 -c imageset.yaml file://ws --dry-run-manifest-lists --src-tls-verify=false")
	if missing := lists("missing.txt"); strings.Count(missing, "\n") < strings.Count(before, "\n")-1 {
		t.Errorf("missing:\n%s\nof:\n%s", missing, before)
	}
}
