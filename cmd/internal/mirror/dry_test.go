package mirror_test

import (
	"encoding/json"
	"strings"
	"testing"

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
